"""How sops' refusals are said without its own words."""

from __future__ import annotations

import pytest

from handler.model.errors import Problem
from handler.render.frames import decode_problem
from handler.render.sops.plain_file import decode_plain, plain


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("MAC mismatch. File has canary, computed canary", "its MAC is another"),
        ("Error decrypting tree: Error walking tree: Could not decrypt value: canary", "its data key doesn't open"),
        ("Error unmarshalling input: canary", "sops refuses its form"),
    ],
)
def test_a_refusal_quotes_nothing(said: str, message: str) -> None:
    options = {"exit_code": 1, "place": "deploy/a.yaml"}
    (frame,) = plain(options, [b"canary", said.encode()])
    problem = decode_problem(frame)
    assert isinstance(problem, Problem)
    assert (problem.subject, message in problem.message, "canary" in str(problem)) == ("deploy/a.yaml", True, False)
    with pytest.raises(ValueError, match="no file"):
        decode_plain(frame)
