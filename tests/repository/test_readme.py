"""README is one screen of essentials: its size, its parts in their order, the recorded demo."""

from __future__ import annotations

import re

from infra.browser import screenshots
from infra.demo.recording import PICTURE, TRANSCRIPT
from tests.repository.pages import DOCS, FENCE, ROOT

README = ROOT / "README.md"
TEXT = README.read_text()


def test_it_is_short() -> None:
    assert len(TEXT.encode()) <= 12_000


def test_its_parts_stand_in_their_order() -> None:
    headings = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert headings == [
        *("See it", "Install", "The first push", "A target", "What it guarantees", "Where it runs", "Compared with Flux and Argo CD"),
        *("What isn't there yet", "Read on"),
    ]
    assert TEXT.index("<picture>") < TEXT.index("## See it")


def section(heading: str) -> str:
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_the_first_push_takes_five_steps() -> None:
    """Install, three commands, and the push itself."""
    blocks = FENCE.findall(section("Install")) + FENCE.findall(section("The first push"))
    commands = [line for _, text in blocks for line in text.splitlines()]
    assert len(commands) == 4
    assert "Then `git push`" in section("The first push")


def test_each_of_the_eight_guarantees_leads_to_where_it_is_explained() -> None:
    rows = re.findall(r"^\d\. \*\*.+$", section("What it guarantees"), re.MULTILINE)
    assert len(rows) == 8
    assert all(re.search(r"→ \[[^]]+\]\([^)]+\)$", row) for row in rows)


def test_the_comparison_has_six_rows_of_the_whole_one() -> None:
    whole = {line.split(" | ")[0] for line in (DOCS / "comparison.md").read_text().splitlines() if line.startswith("| ")}
    rows = [line.split(" | ")[0] for line in section("Compared with Flux and Argo CD").splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 6
    assert set(rows) <= whole


def test_it_shows_the_recorded_demo_which_leads_to_its_text() -> None:
    (shown,) = re.findall(r"^\[!\[([^]]{60,})\]\((\S+)\)\]\((\S+)\)$", section("See it"), re.MULTILINE)
    assert shown[1:] == (str(PICTURE), str(TRANSCRIPT))


def test_it_shows_the_pictures_of_the_page_which_are_small() -> None:
    shown = re.findall(r'<img src="(\S+\.png)" width="\d+" alt="[^"]{40,}">', section("See it"))
    assert shown == [f"{screenshots.IMAGES}/{shot.name}.png" for shot in screenshots.README]
    for path, shot in zip(shown, screenshots.README, strict=True):
        picture = (ROOT / path).read_bytes()
        assert picture[12:16] == b"IHDR"
        assert int.from_bytes(picture[16:20]) == shot.width
        assert len(picture) < 150_000
