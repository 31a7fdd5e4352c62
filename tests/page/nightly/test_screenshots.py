"""Pictures: signed in as a person does it, of the size that is asked for, and none of a page with a fault."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from infra.browser.chromium import Chromium
from infra.browser.screenshots import PAGES, README, Shot, everywhere, take
from tests.page.small_site import Site, document

FORM = document('<form action="/ui/signed"><label>Token <input name="token"></label><button>Sign in</button></form>')


def size(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def test_a_picture_has_its_size_and_a_whole_one_goes_down_to_the_end(chromium: Chromium, tmp_path: Path) -> None:
    pages = {"/icon": "", "/": document("<p>line</p>" * 100), "/ui/login": FORM, "/ui/signed?token=secret": document("signed in")}
    with Site(pages) as site:
        shots = [Shot("one", "/"), Shot("two", "/", "dark", 390, whole=True), Shot("three", "/", width=300, height=200)]
        one, two, three = take(chromium, site.url, "secret", shots, tmp_path / "new")
    assert (size(one), size(three)) == ((1440, 900), (300, 200))
    assert size(two)[0] == 390
    assert size(two)[1] > 2000


def test_no_picture_of_a_page_with_a_fault(chromium: Chromium, tmp_path: Path) -> None:
    with Site({"/icon": "", "/": document("<script>1</script>")}) as site, pytest.raises(AssertionError, match="policy: script-src"):
        take(chromium, site.url, "", [Shot("one", "/")], tmp_path)


def test_every_page_is_pictured_in_both_schemes_at_three_widths() -> None:
    shots = everywhere()
    assert len(shots) == len({each.name for each in shots}) == len(PAGES) * 6
    assert [each.name for each in README] == ["page-overview", "page-target"]
