"""What a command says at its end of how its programs ran."""

from __future__ import annotations

import pytest

from handler.cli.output import Output
from handler.cli.session import Session
from handler.render.program_walls import CALLS, FILES


@pytest.mark.parametrize("lacks", [(), (FILES,), (FILES, CALLS)])
def test_walls_that_programs_lacked_are_named_once(lacks: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with Session(Output(as_json=True), {}) as session:
        session.sandbox.lacks = lacks
    out, err = capsys.readouterr()
    said = [line for line in err.splitlines() if "walls" in line]
    assert out == ""
    assert len(said) == bool(lacks)
    assert all(wall in said[0] for wall in lacks)
