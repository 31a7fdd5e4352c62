"""Variables written into what a real renderer made, by the real child: which ones there are, what is refused, what is hidden."""

from __future__ import annotations

import json

from handler.render import Sandbox
from tests.rooms.render.test_variables import document, refused, sandbox  # noqa: F401 - fixtures, too


def test_many_large_values_end_with_a_refusal_not_with_the_childs_death(sandbox: Sandbox) -> None:
    found = refused(sandbox, json.dumps(document(**{f"k{number}": "${a}${a}" for number in range(100)})), {"a": "x" * 1_000_000})
    assert "all expressions together make more than" in found[0]
    assert len(found) < 101
