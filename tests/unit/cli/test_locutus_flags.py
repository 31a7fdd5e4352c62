"""Every flag and every documented command line of both generations of Locutus, and what becomes of it here.

The tables are literal: what main.go of observatorium/locutus (2018 to 2021) and cli/cli.go of brancz/locutus (to 2025) register, and what
their README shows, which is the same in both. Where the document lies beside the checkout, its command lines are compared with the table.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handler.cli import locutus as locutus_module
from handler.cli.group import USAGE, anneal
from handler.cli.locutus import Flags
from handler.cli.locutus_flags import ENTRYPOINT
from handler.cli.locutus_jsonnet import JsonnetFlags
from handler.cli.session import Session
from tests.locutus import CONFIG, CUSTOM, ONCE, PROGRAMS, RENDERED, ROLLOUT, SEED, STAYING

pytestmark = pytest.mark.slow

MAIN = Path(ENTRYPOINT)
OLD, NEW, BOTH = {"2021"}, {"2025"}, {"2021", "2025"}
DATABASE = "no database triggers a rollout"


@dataclass(frozen=True)
class Flag:
    """`taken`: values, and what of `Flags` or of the session they become; `wrong`: values that are refused; `refused`: why all are."""

    generations: set[str]
    taken: dict[str, dict[str, Any]] | None = None
    wrong: tuple[str, ...] = ()
    refused: str = ""
    truth: bool = False


def paths(name: str, **more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {"a/b": {name: Path("a/b")}, "a/b/": {name: Path("a/b")}, **more}


FLAGS = {
    "log-level": Flag(BOTH, {each: {"log_level": each} for each in ("all", "debug", "info", "warn", "error", "none")}, ("loud", "")),
    "kubeconfig": Flag(BOTH, {"a/b": {"kubeconfig": "a/b"}, "": {"kubeconfig": ""}}),
    "master": Flag(BOTH, {"https://10.0.0.1:6443": {"master": "https://10.0.0.1:6443"}, "": {"master": ""}}),
    "qps": Flag(NEW, {"5": {}, "0x10": {}, "-1": {}}, ("five", "1.5", "")),
    "burst": Flag(NEW, {"10": {}, "017": {}}, ("ten", "")),
    "renderer": Flag(BOTH, {"file": {"renderer": "file"}, "jsonnet": {"renderer": "jsonnet", "program": JsonnetFlags(MAIN)}}, ("helm", "")),
    "trigger": Flag(OLD, {"oneoff": {"every": None}, "interval": {"every": 60.0}}, ("webhook", "")),
    "one-off": Flag(NEW, {"": {"every": None}, "true": {"every": None}, "T": {"every": None}}, ("yes",), truth=True),
    "config-file": Flag(BOTH, paths("config"), ("",)),
    "render-only": Flag(BOTH, {"": {"render_only": True}, "1": {"render_only": True}, "f": {"render_only": False}}, ("on",), truth=True),
    "renderer.file.dir": Flag(BOTH, paths("directory"), ("",)),
    "renderer.file.rollout": Flag(BOTH, paths("rollout"), ("",)),
    "trigger.interval.duration": Flag(
        BOTH,
        {"3s": {"every": 3.0}, "1m0s": {"every": 60.0}, "1h1.5s": {"every": 3601.5}, "1500ms": {"every": 1.5}},
        ("3", "500ms", "-1m", "soon", "", "1m 0s"),
    ),
    "renderer.jsonnet.entrypoint": Flag(BOTH, {"a.jsonnet": {"program": JsonnetFlags(Path("a.jsonnet"))}}, ("",)),
    "renderer.jsonnet.ext-str": Flag(NEW, {"k=v=w": {"program": JsonnetFlags(MAIN, ("k=v=w",))}}),
    "renderer.jsonnet.jpaths": Flag(NEW, {"lib,vendor": {"program": JsonnetFlags(MAIN, searched=("lib,vendor",))}}),
    "trigger.resource.config": Flag(BOTH, {"a/b": {"objects": Path("a/b"), "every": None}}, ("",)),
    "trigger.resource.write-status": Flag(
        BOTH, {"": {"write_status": True}, "true": {"write_status": True}, "false": {"write_status": False}}, ("a",), truth=True
    ),
    "trigger.database.config": Flag(NEW, refused=DATABASE),
    "source.database.file": Flag(NEW, refused=DATABASE),
    "database-connections-file": Flag(NEW, refused=DATABASE),
    "default-database-url-file": Flag(NEW, refused=DATABASE),
}
LINES: dict[str, dict[str, Any] | str] = {
    RENDERED: {"every": None, "render_only": True},
    ONCE: {"every": None, "render_only": False},
    STAYING: {"every": 60.0, "render_only": False},
    **{line: {"every": None, "render_only": True, "renderer": "jsonnet", "directory": None, "rollout": None} for line in PROGRAMS},
    CUSTOM: {"every": None, "render_only": False, "renderer": "jsonnet", "directory": None, "rollout": None, "objects": Path(CONFIG)},
}
"""What the README shows -> what it asks for, or why it is refused."""
TRIGGERS: dict[str, float | str | None] = {
    "--trigger.interval.duration=3s": 3.0,
    "--one-off": None,
    "--one-off=true": None,
    "--one-off --trigger.interval.duration=3s": None,
    "--one-off=false --trigger.interval.duration=3s": 3.0,
    "--trigger=oneoff": None,
    "--trigger=oneoff --one-off": None,
    "--trigger=oneoff --trigger.interval.duration=3s": None,
    "--trigger=interval": 60.0,
    "--trigger=interval --trigger.interval.duration=3s": 3.0,
    "--trigger=interval --one-off": "contradict each other",
    "--trigger=interval --trigger.interval.duration=0s": "expected a duration",
    "--trigger.interval.duration=0s": "no trigger is named",
    "--trigger.interval.duration=0": "no trigger is named",
    "--trigger=resource": "--trigger=resource needs --trigger.resource.config=FILE",
    "--trigger=resource --trigger.resource.config=a": None,
    "--trigger.resource.config=a": None,
    "--trigger.resource.config=a --one-off": None,
    "--one-off=false": "no trigger is named",
    "": "no trigger is named",
    "--render-only": None,
    "--render-only --trigger.interval.duration=3s": 3.0,
}
"""Triggers of both generations -> seconds from run to run, None for once, or the refusal."""


class Asked:
    """What a command line has asked for, instead of doing it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: dict[str, Any] = {}
        monkeypatch.setattr(locutus_module, "roll_out", self._roll_out)

    def _roll_out(self, session: Session, flags: Flags) -> int:
        self.found = {each.name: getattr(flags, each.name) for each in fields(Flags)}
        self.found |= {"master": session.master, "kubeconfig": session.kubeconfig}
        return 0

    def __call__(self, *arguments: str, code: int = 0) -> Result:
        found = CliRunner(env={"KUBECONFIG": "/nonexistent"}).invoke(anneal, ["locutus", *arguments])
        assert found.exit_code == code, f"{arguments}: {found.output}"
        return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def spellings(name: str, value: str, *, truth: bool) -> list[list[str]]:
    if truth:
        return [[f"{dashes}{name}{'=' if value else ''}{value}"] for dashes in ("-", "--")]
    return [words for dashes in ("-", "--") for words in ([f"{dashes}{name}={value}"], [f"{dashes}{name}", value])]


def beside(name: str) -> list[str]:
    """What makes a whole command line of one flag."""
    jsonnet = ["--renderer=jsonnet"] if name.startswith("renderer.jsonnet.") else []
    return [] if name in ("trigger", "one-off", "trigger.interval.duration", "trigger.resource.config") else ["--one-off", *jsonnet]


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_of_both_generations_in_every_spelling(name: str, asked: Asked) -> None:
    flag = FLAGS[name]
    for value, wanted in (flag.taken or {}).items():
        for words in spellings(name, value, truth=flag.truth):
            asked(*beside(name), *words)
            assert asked.found.items() >= wanted.items(), words
    for value in flag.wrong:
        for words in spellings(name, value, truth=flag.truth):
            assert f"--{name}" in asked(*beside(name), *words, code=USAGE).stderr
    if flag.refused:
        for words in ([f"-{name}=a"], [f"--{name}", "a"]):
            said = " ".join(asked("--one-off", *words, code=USAGE).stderr.split())
            assert f"--{name}: {flag.refused}" in said


@pytest.mark.parametrize("line", LINES)
def test_every_documented_command_line(line: str, asked: Asked) -> None:
    words, wanted = shlex.split(line.replace("$KUBECONFIG", "/etc/kube/config"))[1:], LINES[line]
    if isinstance(wanted, str):
        assert wanted in " ".join(asked(*words, code=USAGE).stderr.split())
        return
    asked(*words)
    files = {"directory": Path("example/files/manifests"), "rollout": Path("example/files/rollout.yaml")}
    assert asked.found.items() >= {**files, "kubeconfig": "/etc/kube/config", "renderer": "file", **wanted}.items()


@pytest.mark.parametrize("line", TRIGGERS)
def test_no_command_line_runs_once_where_another_trigger_was_meant(line: str, asked: Asked) -> None:
    wanted = TRIGGERS[line]
    if isinstance(wanted, str):
        assert wanted in asked(*line.split(), code=USAGE).stderr
    else:
        asked(*line.split())
        assert asked.found["every"] == wanted


def test_without_flags_the_defaults_are_those_of_locutus(asked: Asked) -> None:
    asked("--one-off")
    left = {"directory": None, "rollout": None, "config": None, "renderer": "file", "log_level": "info", "listen": "", "master": ""}
    assert asked.found.items() >= left.items()


def test_flags_without_effect_are_noted_once(asked: Asked) -> None:
    said = asked("--one-off", "--qps=5", "-burst", "10").stderr
    assert said.count("\n") == 1
    assert said.startswith("without effect: --qps, --burst; ")
    assert asked("--one-off").stderr == ""


def test_metrics_may_be_served_where_upstream_serves_them(asked: Asked) -> None:
    for value in (":8080", "127.0.0.1:8080", "[::1]:8080"):
        asked("--one-off", f"--web.listen={value}")
        assert asked.found["listen"] == value
    assert "--web.listen: expected host:port or :port, found '8080'" in asked("--one-off", "--web.listen=8080", code=USAGE).stderr


def test_the_document_beside_the_checkout_shows_just_these() -> None:
    if not SEED.is_file():
        pytest.skip("../shared/seeds/locutus.txt is not beside this checkout")
    text = SEED.read_text()
    assert set(re.findall(r"^locutus --.+$", text, re.MULTILINE)) == set(LINES)
    assert ROLLOUT in text
