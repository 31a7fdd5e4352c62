"""`anneal apply` at a terminal of 80 columns: what it would change is shown, it asks, and what is carried out is what was shown."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl
from tests.patience import PATIENCE

COLUMNS = 80
QUESTION = "[y/N]: "
CTRL_C = "\x03"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a terminal of its own. `shown`: all that was printed so far, without colours and the moving line's erasures."""

    def __init__(self, shop: Shop, *arguments: str, stdin: Path | None = None, out: int | None = None) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        env = {
            **os.environ,
            "ANNEAL_CONFIG": str(shop.cli.config),
            "KUBECONFIG": str(shop.cli.kubeconfig),
            "TERM": "xterm",
            "NO_COLOR": "1",
        }
        with contextlib.ExitStack() as open_files:
            given = open_files.enter_context(stdin.open("rb")) if stdin else theirs
            take = (
                "import fcntl, runpy, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0); runpy.run_module('handler', run_name='__main__')"
            )
            command = [sys.executable, "-c", take, *arguments]
            stdout = theirs if out is None else out
            self._process = subprocess.Popen(command, stdin=given, stdout=stdout, stderr=theirs, env=env, start_new_session=True)
        os.close(theirs)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def asks(self, times: int = 1) -> str:
        """Wait until it has asked so often; return what is shown by then."""
        for _ in self._read():
            if self.shown.count(QUESTION) >= times and self.shown.rstrip(" ").endswith(QUESTION.rstrip()):
                return self.shown
        raise AssertionError(self.shown)

    def says(self, text: str) -> str:
        """Wait until a text is shown, wherever its lines break; return all that is shown by then."""
        for _ in self._read():
            if text in " ".join(self.shown.split()):
                return self.shown
        raise AssertionError(self.shown)

    def types(self, keys: str) -> None:
        """Type keys."""
        os.write(self._ours, keys.encode())

    def ends(self) -> tuple[int, str]:
        """Wait for its end; return the exit code and all that was shown."""
        for _ in self._read():
            pass
        return self._process.wait(PATIENCE), self.shown

    def _read(self) -> Iterator[None]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                part = os.read(self._ours, 65536) if wait([self._ours], 1.0) else b""
            except OSError:  # the other end is closed
                return
            self.shown += _ESCAPES.sub("", part.decode(errors="replace")).replace("\r\n", "\n")
            yield


@pytest.fixture
def applied(shop: Shop) -> Shop:
    """A policy that lets one app in, applied; git has taken that out since, and changed a Secret."""
    ingress = [{"from": [{"podSelector": {"matchLabels": {"app": "front"}}}]}]
    shop.work.write(
        "deploy/np.yaml", document("NetworkPolicy", "web", "networking.k8s.io/v1", spec={"podSelector": {}, "ingress": ingress})
    )
    shop.push("A policy")
    shop.cli("apply")
    shop.work.write("deploy/np.yaml", document("NetworkPolicy", "web", "networking.k8s.io/v1", spec={"podSelector": {}}))
    shop.work.write("deploy/secret.yaml", document("Secret", "login", stringData={"password": "canary-0a77e1-another"}))
    shop.push("Nothing is let in")
    return shop


def lets_in(shop: Shop, kubectl: Kubectl) -> bool:
    return "ingress" in kubectl("get", "networkpolicy", "web", "-n", shop.namespace)["spec"]


@pytest.mark.parametrize("keys", ["n\n", CTRL_C])
def test_apply_shows_its_plan_and_any_answer_but_yes_changes_nothing(applied: Shop, kubectl: Kubectl, keys: str) -> None:
    with Terminal(applied, "apply") as terminal:
        shown = terminal.asks()
        assert f"~ update NetworkPolicy/{applied.namespace}/web  deploy/np.yaml:1\n    - spec.ingress: [" in shown
        assert "    data.password: *** → ***" in shown
        assert "2 to update, 3 unchanged; 1 field removed\nGo on? [y/N]:" in shown
        terminal.types(keys)
        code, shown = terminal.ends()
    assert (code, shown.endswith("nothing was changed\n")) == (1, True), shown
    assert "canary" not in shown
    assert "Traceback" not in shown
    assert lets_in(applied, kubectl)
    assert "2 to update" in applied.cli("plan").stdout
    assert len(applied.cli.json("history")["runs"]) == 1, "a plan that was declined is no run of its record"


def test_a_yes_applies_the_plan_that_was_shown_prints_no_field_twice_and_is_not_asked_for_again(applied: Shop, kubectl: Kubectl) -> None:
    with Terminal(applied, "apply") as terminal:
        terminal.asks()
        terminal.types("y\n")
        code, shown = terminal.ends()
    assert code == 0, shown
    after = shown.partition(QUESTION)[2]
    assert f"NetworkPolicy/{applied.namespace}/web configured\n" in after
    assert "spec.ingress" not in after
    assert "2 configured" in after
    assert not lets_in(applied, kubectl)
    with Terminal(applied, "apply") as terminal:
        code, shown = terminal.ends()
    assert (code, QUESTION in shown, "unchanged" in shown) == (0, False, True), shown


def test_another_plan_than_the_one_that_was_shown_is_shown_and_asked_about(applied: Shop, kubectl: Kubectl) -> None:
    with Terminal(applied, "apply") as terminal:
        terminal.asks()
        applied.work.write("deploy/two.yaml", document("ConfigMap", "two", data={"value": "2"}))
        applied.push("Something more, while a person reads")
        terminal.types("y\n")
        shown = terminal.asks(2).partition(QUESTION)[2]
        assert "something moved meanwhile; the plan is another one now:" in shown
        assert "data.value: 1 → 2" in shown
        terminal.types("n\n")
        code, shown = terminal.ends()
    assert (code, shown.endswith("nothing was changed\n")) == (1, True), shown
    assert lets_in(applied, kubectl)
    assert "lease" not in applied.cli("status").stdout


def test_an_open_attempt_is_asked_about_without_its_lease(shop: Shop, kubectl: Kubectl) -> None:
    shop.work.write("deploy/held.yaml", document("ConfigMap", "held"))
    shop.push("What will not go")
    shop.cli("apply")
    held = ("patch", "cm", "held", "-n", shop.namespace, "--type=merge", "-p")
    kubectl.run(*held, '{"metadata":{"finalizers":["acme.io/hold"]}}')
    shop.work.remove("deploy/held.yaml")
    shop.push("It goes")
    with Terminal(shop, "apply", "-y") as terminal:
        assert "shop waits for deletions" in terminal.says("finalizers: acme.io/hold")
        terminal.types(CTRL_C)
        assert terminal.ends()[0] == 4
    assert "attempt:" in shop.cli("status", "shop").stdout
    with Terminal(shop, "apply") as terminal:
        asked = " ".join(terminal.asks().split())
        assert f"- prune ConfigMap/{shop.namespace}/held (is being deleted already; finalizers: acme.io/hold)" in asked
        assert "lease:" not in shop.cli("status", "shop").stdout
        kubectl.run(*held, '{"metadata":{"finalizers":null}}')
        terminal.types("y\n")
        code, shown = terminal.ends()
    assert code == 0, shown
    assert "attempt:" not in shop.cli("status", "shop").stdout


def flags(shop: Shop) -> tuple[str, ...]:
    return ("-f", "-", "--name", "local", "-n", shop.namespace, "--state-namespace", shop.namespace)


@pytest.mark.parametrize(("keys", "code"), [("y\n", 0), ("\x04", 1)])
def test_where_standard_input_is_the_manifests_the_terminal_itself_is_asked(
    shop: Shop, kubectl: Kubectl, tmp_path: Path, keys: str, code: int
) -> None:
    piped = tmp_path / "x.yaml"
    piped.write_text(document("ConfigMap", "piped"))
    with Terminal(shop, "apply", *flags(shop), stdin=piped) as terminal:
        assert f"+ create ConfigMap/{shop.namespace}/piped  standard input:1" in terminal.asks()
        terminal.types(keys)
        assert terminal.ends()[0] == code, terminal.shown
    assert kubectl.has("cm", "piped", shop.namespace) is (code == 0)


def test_nothing_piped_in_is_a_mistake_of_usage_and_no_wait(shop: Shop) -> None:
    with Terminal(shop, "apply", *flags(shop)) as terminal:
        code, shown = terminal.ends()
    assert code == 64
    assert "nothing is piped into it; write: kustomize build DIR | anneal apply -f - --name local" in " ".join(shown.split())


def test_a_closed_standard_output_doesnt_end_an_apply_in_its_middle(shop: Shop, kubectl: Kubectl) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with Terminal(shop, "apply", "-y", out=writes) as terminal:
        os.close(writes)
        code, shown = terminal.ends()
    assert code == 1, shown
    assert "Traceback" not in shown
    assert kubectl("get", "cm", "three", "-n", shop.namespace)
    assert shop.cli("status", "shop").stdout.startswith("shop: applied")
