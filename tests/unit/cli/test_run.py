"""`anneal run`: what the trigger of a program's own may be called."""

from __future__ import annotations

import pytest

from handler.cli.run import named
from handler.model.errors import ConfigInvalid
from tests.unit.rows import each_row


def _watch(*_: object) -> None:
    raise AssertionError("it is only named")


@each_row(
    ("name", "why"),
    [
        ("oneoff", "is what runs of another cause are called"),
        ("push", "is what runs of another cause are called"),
        ("Spool", "can't be what its runs are called"),
        ("a" * 41, "can't be what its runs are called"),
    ],
)
def test_a_name_that_a_record_could_not_keep_is_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        named(name, _watch)
    assert why in str(refused.value)
    assert "name its row" in str(refused.value)


def test_another_name_is_kept() -> None:
    assert named("spool-2", _watch).name == "spool-2"
