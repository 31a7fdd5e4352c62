"""The page's documentation names each state as the page shows it: in this order, with this sign, word and colour."""

from __future__ import annotations

import re

from handler.inspect.signs import INVENTORY, OBJECTS
from handler.web.page.target_view import _RULES
from tests.repository.pages import ROOT

PAGE = (ROOT / "docs/page.md").read_text()
COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "moving": "blue", "quiet": "grey"}


def rows(heads: str) -> list[list[str]]:
    """Return the rows of the table with these heads, without its last column."""
    table = PAGE.partition(f"| {heads} |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")[:-1]] for line in table.splitlines()[2:]]


def test_the_states_of_a_target_stand_in_the_order_in_which_they_are_found() -> None:
    assert rows("state | colour | what it means") == [[found.word, COLOURS[found.tone]] for found, _ in _RULES]


def test_the_colours_of_the_gap_are_those_of_page_and_command_line() -> None:
    told = rows("sign | word | colour | of an object, or a field")
    assert sorted(told) == sorted([found.sign, found.word, COLOURS[found.tone]] for found in OBJECTS.values())


def test_the_states_of_an_inventory_are_named() -> None:
    (told,) = re.findall(r"An inventory object is (.*?), as", PAGE)
    assert set(re.findall(r"`([a-z ]+)`", told)) == {found.word for found in INVENTORY.values()}
