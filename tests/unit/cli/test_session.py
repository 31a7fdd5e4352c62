"""What a command works with, and what it says at its end of how its programs ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler.cli.output import Output
from handler.cli.session import Session
from handler.model.errors import ConfigInvalid
from handler.render.programs.program_walls import CALLS, FILES


@pytest.mark.parametrize("lacks", [(), (FILES,), (FILES, CALLS)])
def test_walls_that_programs_lacked_are_named_once(lacks: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with Session(Output(as_json=True), {}) as session:
        session.sandbox.lacks = lacks
    out, err = capsys.readouterr()
    said = [line for line in err.splitlines() if "walls" in line]
    assert out == ""
    assert len(said) == bool(lacks)
    assert all(wall in said[0] for wall in lacks)


def test_without_a_configuration_there_are_no_targets_and_a_broken_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("handler.config.load.SYSTEM", tmp_path / "none.yaml")
    assert Session(Output(), {}).configured == ()
    target = "{name: shop, repository: {url: https://git.example.com/shop.git}, namespaces: [shop]}"
    (tmp_path / "anneal.yaml").write_text(f"apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets: [{target}]\n")
    assert [each.name for each in Session(Output(), {}).configured] == ["shop"]
    (tmp_path / "anneal.yaml").write_text("targets: 1\n")
    with pytest.raises(ConfigInvalid):
        _ = Session(Output(), {}).configured
