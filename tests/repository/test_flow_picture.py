"""The picture of the flow: the committed files are what the code draws, from one layout, readable on both pages, alone."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from infra.pages.flow import IMAGES, THEMES, WIDTH, Theme, svg, write
from tests.repository.pages import ROOT

SVG = "{http://www.w3.org/2000/svg}"
BOTH = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


@pytest.mark.parametrize("name", THEMES)
def test_the_committed_picture_is_what_the_code_draws(name: str) -> None:
    assert (IMAGES / f"flow-{name}.svg").read_text() == svg(THEMES[name]), "scripts/pages draws it anew"


def test_the_pictures_are_written_where_a_page_looks_for_them(tmp_path: Path) -> None:
    write(tmp_path / "images")
    assert {path.name for path in (tmp_path / "images").iterdir()} == {f"flow-{name}.svg" for name in THEMES}


def test_an_argument_is_refused_before_anything_is_drawn() -> None:
    done = subprocess.run([ROOT / "scripts" / "pages", "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, "expected no argument, found --help" in done.stderr) == (2, True)


def test_readme_shows_each_on_its_page() -> None:
    (picture,) = re.findall(r"<picture>.*?</picture>", (ROOT / "README.md").read_text(), re.DOTALL)
    assert '<source media="(prefers-color-scheme: dark)" srcset="docs/images/flow-dark.svg">' in picture
    assert '<img src="docs/images/flow-light.svg"' in picture
    assert re.search(r'alt="[^"]{40,}"', picture)


def test_both_are_of_one_layout() -> None:
    colours = re.compile(r"#[0-9a-f]{6}")
    assert len({colours.sub("", svg(theme)) for theme in THEMES.values()}) == 1


@BOTH
def test_nothing_is_loaded_from_elsewhere(theme: Theme) -> None:
    drawn = svg(theme).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|url\((?!#)|@import|@font-face|<image|<script|href", drawn)


@BOTH
def test_every_box_lies_inside_and_no_two_touch(theme: Theme) -> None:
    drawn = ElementTree.fromstring(svg(theme)).findall(f"{SVG}rect[@class]")
    boxes = sorted((float(box.attrib["y"]) // 20, float(box.attrib["x"]), float(box.attrib["width"])) for box in drawn)
    assert len(boxes) > 15
    assert all(x > 0 and x + width < WIDTH for _, x, width in boxes)
    for (row, x, width), (below, following, _) in pairwise(boxes):
        assert row != below or x + width < following


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@BOTH
@pytest.mark.parametrize(("front", "back"), [("text", "box"), ("quiet", "page"), ("mark", "page")])
def test_letters_stand_out_as_wcag_asks(theme: Theme, front: str, back: str) -> None:
    light, dark = sorted((luminance(getattr(theme, front)), luminance(getattr(theme, back))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5
