"""What a LIST yields is checked again."""

from __future__ import annotations

import pytest

from handler.cluster.live import matches


@pytest.mark.parametrize(
    ("labels", "selector", "found"),
    [
        ({"a": "1"}, "a=1", True),
        ({"a": "1", "b": "2"}, "a=1,b=2", True),
        ({"a": "1"}, "a=2", False),
        ({"a": "1"}, "a=1,b=2", False),
        ({"a": "1"}, "a", True),
        ({"a": ""}, "a", True),
        ({"a": "1"}, "a=", False),
        ({"b": "1"}, "a", False),
        ({}, "a=1", False),
        (None, "a=1", False),
        (None, "", True),
        ({"a": "1"}, "!a", False),
        ({"b": "1"}, "!a", True),
        (None, "!a", True),
        ({"b": "1"}, "b=1,!a", True),
    ],
)
def test_items_of_a_list_are_matched_against_the_label_selector_again(labels: dict[str, str] | None, selector: str, found: bool) -> None:
    assert matches({"metadata": {"labels": labels}}, selector) is found
