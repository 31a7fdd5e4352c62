"""The page's documentation names each state as the page shows it: in this order, with this sign, word and colour."""

from __future__ import annotations

import re

from handler.inspect.signs import INVENTORY, OBJECTS
from handler.web.page.target_view import _RULES
from infra.house.sources import ROOT

PAGE = (ROOT / "docs/page.md").read_text()
COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "moving": "blue", "quiet": "grey"}


def rows(heads: str) -> list[list[str]]:
    """Return the rows of the table with these heads, without its last column."""
    table = PAGE.partition(f"| {heads} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")[:-1]] for line in table.splitlines()[2:]]


def test_each_state_is_named_as_the_page_shows_it() -> None:
    assert rows("state | colour | what it means") == [[found.word, COLOURS[found.tone]] for found, _ in _RULES]
    shown = rows("sign | word | colour | of an object, or a field")
    assert sorted(shown) == sorted([found.sign, found.word, COLOURS[found.tone]] for found in OBJECTS.values())
    (inventory,) = re.findall(r"An inventory object is (.*?), as", PAGE)
    assert set(re.findall(r"`([a-z ]+)`", inventory)) == {found.word for found in INVENTORY.values()}
