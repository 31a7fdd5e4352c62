"""Commands in a stranger's checkout: its ./anneal.yaml counts once a person said so. A real listener, a real terminal, a real shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rooms.cli.test_strangers_checkout import Listener, at_terminal, checkout, harmless, run, stranger  # noqa: F401 - fixtures, too


@pytest.mark.parametrize("command", ["anneal render a", "anneal suspend a --reason 'no; touch PWNED'"])
def test_the_way_out_that_is_printed_works_pasted(checkout: Path, stranger: Listener, command: str) -> None:
    line = run(checkout, command).stderr.strip().splitlines()[-1].strip()
    assert line.startswith("anneal ")
    run(checkout, line)
    assert (stranger.got != [] or (checkout / "ran").exists(), (checkout / "PWNED").exists()) == (True, False)


@pytest.mark.parametrize("kind", ["link", "readable", "directory"])
def test_what_others_may_have_written_isnt_believed(checkout: Path, stranger: Listener, kind: str) -> None:
    at_terminal(checkout, "anneal render a", "y")
    (state,) = (checkout.parent / "home").rglob("trusted/*")
    if kind == "link":
        (checkout / "state").write_text(state.read_text())
        (checkout / "state").chmod(0o600)
        state.unlink()
        state.symlink_to(checkout / "state")
    else:
        (state if kind == "readable" else state.parent).chmod(0o755)
    stranger.got.clear()
    (checkout / "ran").unlink(missing_ok=True)
    assert run(checkout, "anneal render a").returncode == 1
    assert harmless(checkout, stranger)
