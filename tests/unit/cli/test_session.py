"""What a command works with, and what it says at its end of how its programs ran."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest

from handler.cli import trust
from handler.cli.output import Output
from handler.cli.serve import serve
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
    given = {"ANNEAL_CONFIG": "anneal.yaml"}
    assert [each.name for each in Session(Output(), given).configured] == ["shop"]
    (tmp_path / "anneal.yaml").write_text("targets: 1\n")
    with pytest.raises(ConfigInvalid):
        _ = Session(Output(), given).configured


CONFIGURATION = "apiVersion: anneal.dev/v1alpha1\nkind: Config\ninstallation: {}\ntargets: []\n"


def test_without_a_terminal_the_machines_own_configuration_counts_in_place_of_the_working_directorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    system = tmp_path / "system.yaml"
    monkeypatch.setattr("handler.config.load.SYSTEM", system)
    Path("anneal.yaml").write_text(CONFIGURATION.format("stranger"))
    session = Session(Output(), {"HOME": str(tmp_path)})
    with pytest.raises(ConfigInvalid, match="you haven't said yet that it counts"):
        _ = session.settings
    system.write_text(CONFIGURATION.format("operator"))
    assert (session.settings.installation, session.path, session.is_beside) == ("operator", system, False)
    assert f"{tmp_path}/here/anneal.yaml" in capsys.readouterr().err
    assert (Session(Output(), {}).operators_targets, Session(Output(), {"ANNEAL_CONFIG": "anneal.yaml"}).is_beside) == ((), False)


@pytest.mark.parametrize("counts", [False, True])
def test_a_web_process_of_what_a_person_allowed_reads_no_file_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: bool) -> None:
    monkeypatch.chdir(tmp_path)
    Path("anneal.yaml").write_text(CONFIGURATION.format("allowed"))
    session = Session(Output(), {"XDG_STATE_HOME": str(tmp_path / "state")}, None if counts else "anneal.yaml")
    trust.remember(tmp_path / "anneal.yaml", session.read, session.environ)
    seen: list[str] = []

    def replaced(_program: str, command: list[str], _environ: object) -> None:
        seen.append(" ".join(command[1:]))
        sys.exit()

    monkeypatch.setattr("os.execve", replaced)
    monkeypatch.setattr("handler.web.__main__.main", lambda _environ, read, _routes: seen.append(read(Path()).installation))

    def supervised(_path: Path, _bind: str, _engine: object, door: Any, read: Any) -> int:
        seen.append(read(Path()).installation)
        Path("anneal.yaml").write_text(CONFIGURATION.format("edited"))
        with contextlib.suppress(SystemExit):
            door({})
        return 0

    monkeypatch.setattr("handler.cli.serve.supervised", supervised)
    assert serve(session, "127.0.0.1:0", False, 1) == 0
    assert seen == ["allowed", "allowed" if counts else "-P -m handler.web"]
