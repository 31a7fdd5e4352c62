"""`anneal status` of many targets: at 80 columns, with clusters and git hosts that hang, and with or without a server that looks on."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from multiprocessing.connection import wait
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.e2e.cli.conftest import Shop, document
from tests.e2e.cli.status_server import configure, server
from tests.patience import PATIENCE, until
from tests.terminal import screen

COLUMNS = 80


def on_a_terminal(shop: Shop, *arguments: str, columns: int = COLUMNS) -> tuple[int, list[str]]:
    """Run a command on a terminal of so many columns; return its exit code and the lines that stand there in the end, without colours."""
    code, written = drawn(shop, *arguments, columns=columns)
    return code, screen(written)


def drawn(shop: Shop, *arguments: str, columns: int = COLUMNS) -> tuple[int, str]:
    """Run a command on such a terminal; return its exit code and all that it has written there."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig), "TERM": "xterm"}
    env.pop("COLUMNS", None)
    with subprocess.Popen([sys.executable, "-m", "handler", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env) as command:
        os.close(theirs)
        shown, end = b"", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                shown += os.read(ours, 65536) if wait([ours], 1.0) else b""
            except OSError:  # the other end is closed
                break
        os.close(ours)
        code = command.wait(PATIENCE)
    return code, shown.decode(errors="replace")


@contextmanager
def hanging() -> Iterator[str]:
    """Yield the address of what takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def kubeconfig_of(server: str, file: Path) -> Path:
    users = "users: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"
    file.write_text(f"apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n{users}")
    return file


def table(shop: Shop, *arguments: str, code: int = 0) -> dict[str, dict[str, str]]:
    """Return the cells of the table by target, as a program reads them that isn't a terminal."""
    lines = shop.cli("status", *arguments, code=code).stdout.partition("\n\n")[0].splitlines()
    heads = lines[0].split()
    return {line.split()[0]: dict(zip(heads, line.split(maxsplit=len(heads) - 1), strict=True)) for line in lines[1:]}


@pytest.fixture
def several(shop: Shop) -> Shop:
    """Targets that are well, failed, held, suspended and new; of one repository."""
    shop.work.write("bad/one.yaml", "kind: [")
    shop.work.write("few/kept.yaml", document("ConfigMap", "kept"))
    for number in range(12):
        shop.work.write(f"few/going-{number}.yaml", document("ConfigMap", f"going-{number}"))
    shop.work.write("quiet/quiet.yaml", document("ConfigMap", "quiet"))
    shop.push("Everything that the shop of the north needs for the summer, and then some more of it")
    paths = {"shop": "deploy", "bank": "bad", "cellar": "few", "attic": "quiet", "new": "quiet"}
    elsewhere = {"namespaces": [f"{shop.namespace}-bank"], "namespace": f"{shop.namespace}-bank"}  # else it may declare what goes below
    configure(shop, *({"name": name, "path": path, **(elsewhere if name == "bank" else {})} for name, path in paths.items()))
    for name in ("shop", "cellar", "attic"):
        shop.cli("apply", name)
    shop.cli("apply", "bank", code=1)
    for number in range(12):
        shop.work.remove(f"few/going-{number}.yaml")
    shop.push("Twelve go")
    shop.cli("apply", "cellar", code=3)
    shop.cli("suspend", "attic", "--reason", "release freeze")
    return shop


def test_the_table_fits_a_terminal_has_trouble_first_and_says_the_same_to_programs(several: Shop) -> None:
    code, lines = on_a_terminal(several, "status", "--exit-code")
    assert code == 2
    assert max(len(line) for line in lines if not line.startswith("    ")) <= COLUMNS
    assert [line.split()[:3] for line in lines[:6]] == [
        ["TARGET", "PHASE", "HEALTH"],
        ["bank", "failed", "unknown"],
        ["cellar", "held", "healthy"],
        ["shop", "applied", "healthy"],
        ["new", "never-ran", "-"],
        ["attic", "suspended", "healthy"],
    ]
    assert lines[0].split()[3:] == ["COMMIT", "AGE", "HEAD", "SINCE", "HELD", "SUBJECT"]
    told = [line for line in lines if line.startswith("    anneal")]
    assert [line.split()[1:3] for line in told] == [["apply", "bank"], ["approve", "cellar"], ["apply", "shop"], ["apply", "new"]]
    a_program_reads_every_column_and_json_says_the_same(several)
    several.cli(*next(line for line in told if "approve" in line).split()[1:], "-y")
    assert table(several)["cellar"]["PHASE"] == "applied"
    code, lines = on_a_terminal(several, "status", "shop", columns=60)
    assert (code, lines[0]) == (0, "shop: applied")
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 60


def a_program_reads_every_column_and_json_says_the_same(several: Shop) -> None:
    found = table(several, "--exit-code", code=2)
    head = several.work.git("rev-parse", "HEAD").strip()
    assert (found["cellar"]["HELD"], found["shop"]["HEAD"], found["bank"]["COMMIT"]) == ("yes", head[:8], "-")
    assert found["shop"]["SUBJECT"].startswith("Everything that the shop of the north")
    asked = len(several.host.requests)
    offline = table(several, "--offline")
    assert (offline["shop"]["HEAD"], len(several.host.requests)) == ("-", asked)
    shown = {each["target"]: each for each in several.cli.json("status")["targets"]}
    assert (shown["cellar"]["held"], shown["shop"]["head"]["commit"], shown["shop"]["head"]["subject"]) == (True, head, "Twelve go")
    assert shown["shop"]["server"]["runs"] is False
    assert "PHASE-SINCE" in several.cli("status", "-o", "wide").stdout


def test_an_api_server_that_hangs_is_told_once_for_its_nine_targets(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.cli("apply")
    monkeypatch.setenv("ANNEAL_STATUS_TIMEOUT", "10")
    with hanging() as cluster, hanging() as git:
        file = kubeconfig_of(f"https://{cluster}", tmp_path / "away")
        names = [f"far-{number}" for number in range(9)]
        away = [{"name": name, "cluster": {"kubeconfig": {"file": str(file)}}} for name in names]
        configure(shop, {"name": "shop"}, *away, {"name": "deaf", "path": "x", "repository": {"url": f"http://{git}/deaf.git"}})
        found = table(shop, "--exit-code", code=2)
        assert (found["shop"]["PHASE"], found["deaf"]["HEAD"], {found[name]["PHASE"] for name in names}) == (
            "applied",
            "?",
            {"unknown"},
        )
        told = shop.cli("status", code=1).stdout
        assert told.count(f"cluster kubeconfig {file} (9 targets: far-0, far-1, far-2, far-3, far-4, …): hasn't answered within 10 s") == 1
        assert f"kubectl --kubeconfig {file} get --raw /readyz" in told
        assert f"git host {git} (1 target: deaf)" in told
        assert not re.search(r"HTTPS?Connection|urllib3|object at 0x", told)
        assert f"kubectl --kubeconfig {file} get --raw /readyz" in shop.cli("status", "far-3", code=1).stdout
        _, written = drawn(shop, "status")
        assert "far-3   asking" in written, "what is known is drawn before all have answered"


def test_status_names_a_running_server_and_one_that_has_ended_by_its_heartbeat(shop: Shop) -> None:
    configure(shop, {"name": "shop"}, {"name": "other", "path": "none"})
    shop.cli("apply", "shop")
    assert "no server has ever looked after it" in shop.cli("status", "shop").stdout
    with server(shop, "run", "shop", "--trigger", "interval", "--interval", "2s") as log:
        until(lambda: table(shop)["shop"]["LOOKED"] != "-", log.read_text)
        page = shop.cli("status", "shop").stdout
        assert re.search(r"next: nothing to do\n", page)
        assert re.search(rf"server: +{socket.gethostname()}_\d+ \(\S+\) looked \d+ s ago", page)
        assert "no running server looks after it" in shop.cli("status", "other").stdout
        assert shop.cli.json("status", "shop")["server"]["runs"] is True
        assert table(shop, "--exit-code", code=2)["shop"]["PHASE"] == "applied"
    page = shop.cli("status", "shop").stdout
    assert "nothing to do now, and no server has looked after it for" in page
    assert "anneal serve" in page
    assert "    anneal apply shop\n" in page


def test_serve_renews_its_heartbeat_and_has_a_metric_of_it(shop: Shop) -> None:
    configure(shop, {"name": "shop"}, metrics={"bind": "127.0.0.1:0"}, healthInterval="0s")
    with server(shop, "serve", "--bind", "127.0.0.1:0") as log:
        until(lambda: table(shop)["shop"]["LOOKED"] != "-", log.read_text)
        listening = next(json.loads(line) for line in log.read_text().splitlines() if "listening for metrics" in line)
        address = f"http://{listening['host']}:{listening['port']}/metrics"
        shown = urlopen(address).read().decode()
    found = re.search(r'^anneal_heartbeat_timestamp_seconds\{cluster="default"\} (\S+)$', shown, re.MULTILINE)
    assert found
    assert float(found[1]) > 1.7e9
    assert shop.cli.json("status", "shop")["state"]["health"]["state"] == "healthy", "runs judge it"


def test_a_target_without_a_rollout_is_explained_and_nothing_is_wider_than_the_terminal(shop: Shop) -> None:
    shop.work.write("deploy/bad.yaml", document("ConfigMap", "not a name " * 20))
    shop.push("A name that no server takes")
    shop.cli("apply", code=1)
    _, lines = on_a_terminal(shop, "rollout", "shop")
    assert lines[0] == "shop has no rollout on record; how it stands:"
    assert lines[1].startswith("shop: failed")
    for arguments in (("rollout", "shop"), ("status", "shop"), ("status",), ("history", "shop"), ("history", "shop", "-v")):
        _, lines = on_a_terminal(shop, *arguments)
        wide = [line for line in lines if len(line) > COLUMNS and not line.startswith("    anneal")]
        assert not wide, arguments
    assert max(len(line) for line in shop.cli("status", "shop").stdout.splitlines()) > COLUMNS, "elsewhere nothing is wrapped"


def test_status_watch_prints_a_line_a_change_without_a_terminal(shop: Shop) -> None:
    log = shop.cli.config.parent / "watch.log"
    env = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as out, subprocess.Popen([sys.executable, "-m", "handler", "status", "--watch"], stdout=out, env=env) as watching:
        try:
            until(lambda: "phase=never-ran" in log.read_text(), log.read_text)
            shop.cli("apply")
            until(lambda: "phase=applied" in log.read_text().splitlines()[-1], log.read_text)
        finally:
            watching.send_signal(signal.SIGINT)
    assert re.match(r"\S+Z shop phase=never-ran health=- commit=- head=- drift=- held=- level=off\n", log.read_text())


def test_status_watch_redraws_in_place_on_a_terminal(shop: Shop) -> None:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    env = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig), "TERM": "xterm"}
    command = [sys.executable, "-m", "handler", "status", "-w"]
    shown, end = b"", time.monotonic() + PATIENCE
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True) as watching:
        os.close(theirs)
        try:
            while shown.count(b"never-ran") < 2 and time.monotonic() < end:
                shown += os.read(ours, 65536) if wait([ours], 1.0) else b""
        finally:
            watching.kill()
    os.close(ours)
    assert shown.count(b"never-ran") >= 2
    assert b"\x1b[1A" in shown, "the cursor goes up to the lines before"
