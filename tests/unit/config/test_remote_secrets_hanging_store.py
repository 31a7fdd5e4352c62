"""Stores that hang or are asked by many at once: who waits, and for how long."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from handler.config.git_settings import SecretRef
from handler.config.remote_secrets import AT_ONCE, RemoteSecrets
from handler.config.secret_rotation import EVERY, Rotation
from handler.config.settings import ReplaySettings, ReplayToken
from handler.model.errors import SecretUnavailable
from tests.patience import PATIENCE, until
from tests.unit.config.counting_store import HOOK, NEW, OLD, TTL, Rotating, Store, aws, hooked


def test_while_a_store_hangs_one_thread_waits_a_little_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote_secrets.RemoteSecrets.renew.__defaults__", (0.01,))
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.gate.clear()
    store.reached.clear()
    store.values[HOOK] = NEW
    rotating.now = TTL
    assert rotating.hooks() == [OLD]
    assert store.reached.wait(PATIENCE)  # the question has its moment
    for rotating.now in (TTL + EVERY, TTL * 2, TTL * 3):
        assert rotating.hooks() == [OLD]
    assert store.asked[HOOK] == 2, "while one question is on its way there is no other"
    store.gate.set()
    answered(rotating.rotation)
    rotating.now += EVERY
    assert rotating.hooks() == [NEW]
    answered(rotating.rotation)
    assert store.asked[HOOK] == 3, "the answer is as old as its question"


def answered(rotation: Rotation) -> None:
    """Return when nothing is on its way."""
    remote = rotation._remote
    with remote._answered:
        assert remote._answered.wait_for(lambda: not remote._asked, PATIENCE)


def test_one_secret_that_hangs_keeps_no_other_from_rotating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote_secrets.RemoteSecrets.renew.__defaults__", (0.01,))
    sound, hung = (SecretRef(aws_parameter=f"/anneal/{name}") for name in ("sound", "hung"))
    store, gate = Store({sound: f"{OLD}-sound", hung: f"{OLD}-hung"}), threading.Event()

    def fetch(ref: SecretRef) -> str | None:
        value = store(ref)
        assert ref == sound or store.asked[hung] == 1 or gate.wait(PATIENCE)
        return value

    rotating = Rotating(hooked(sound, hung), fetch)
    for turn in range(1, 4):
        store.values |= {sound: f"{NEW}-sound-{turn}", hung: f"{NEW}-hung"}
        rotating.now = turn * TTL
        rotating.hooks()
        answers(rotating.rotation, sound)
        rotating.now += EVERY
        assert rotating.hooks() == [f"{NEW}-sound-{turn}", f"{OLD}-hung"]
    until(lambda: store.asked[hung] >= 2)
    assert store.asked[hung] == 2, "what is on its way isn't asked for again"
    gate.set()
    answered(rotating.rotation)
    rotating.now += EVERY
    assert rotating.hooks()[1] == f"{NEW}-hung"


def answers(rotation: Rotation, ref: SecretRef) -> None:
    """Return when this isn't on its way."""
    remote = rotation._remote
    with remote._answered:
        assert remote._answered.wait_for(lambda: ref not in remote._asked, PATIENCE)


def test_a_start_names_what_didnt_answer_in_time_and_goes_on_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote_secrets.START", 0.05)
    monkeypatch.setattr("handler.config.remote_secrets.TURN", 0.01)
    refs = [SecretRef(aws_parameter=f"/anneal/{number}") for number in range(AT_ONCE + 2)]
    store = Store(dict.fromkeys(refs, OLD))
    store.gate.clear()
    with pytest.raises(SecretUnavailable) as caught:
        Rotation(hooked(*refs), {}, fetch=store)
    store.gate.set()
    assert str(caught.value).count("its store didn't answer in 0.05 s") == len(refs)


def test_hanging_secrets_above_the_concurrency_limit_block_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote_secrets.START", PATIENCE)
    monkeypatch.setattr("handler.config.remote_secrets.TURN", 0.01)
    gate, told = threading.Event(), threading.Event()
    refs = [SecretRef(aws_parameter=f"/anneal/{number}") for number in range(AT_ONCE + 1)]

    def fetch(ref: SecretRef) -> str:
        if ref == refs[-1]:
            told.set()
        else:
            assert gate.wait(PATIENCE)
        return OLD

    starting = threading.Thread(target=RemoteSecrets, args=(refs, fetch, TTL))
    starting.start()
    assert told.wait(PATIENCE)
    gate.set()
    starting.join(PATIENCE)


HANGING = """
import sys, threading, time
from handler.config import remote_secrets
from handler.config.git_settings import SecretRef
remote_secrets.START = 0.01
remote_secrets.RemoteSecrets([SecretRef(aws_parameter="/anneal/hung")], lambda ref: threading.Event().wait(), 60.0)
"""


def test_a_store_that_hangs_keeps_no_process_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], timeout=PATIENCE, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_while_one_thread_asks_a_secret_store_others_read_without_waiting() -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.reached.clear()
    store.gate.clear()
    rotating.now = TTL
    seen: list[list[str]] = []
    asking = threading.Thread(target=lambda: seen.append(rotating.hooks()))
    asking.start()
    assert store.reached.wait(PATIENCE)
    others = [threading.Thread(target=lambda: seen.append(rotating.hooks())) for _ in range(20)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join(PATIENCE)
    assert seen == [[OLD]] * 20
    store.gate.set()
    asking.join(PATIENCE)


def test_no_repr_shows_a_stores_answer() -> None:
    remote = RemoteSecrets([HOOK], Store({HOOK: OLD}), TTL)
    assert remote(HOOK) == OLD
    assert "CANARY" not in f"{remote!r} {remote._answers}"


@pytest.mark.slow
def test_fifty_threads_see_whole_snapshots_while_a_store_rotates() -> None:
    """Argo CD's CVE-2025-55191: concurrent reads and writes of credentials crashed it."""
    hook, token = aws("anneal", "hook"), aws("anneal", "token")
    settings = replace(hooked(hook), replay=ReplaySettings((ReplayToken("ci", token),)))
    store = Store({aws("anneal"): json.dumps({"hook": f"{OLD}-0000", "token": f"{NEW}-0000"})})
    rotating = Rotating(settings, store)
    broken: list[str] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.001):  # all of them spinning would leave the rotating thread no turn
            present = rotating.rotation.present()
            ((_, secret),) = present.tokens
            (accepted,) = present.webhook("github")
            values = accepted.secret.reveal(), secret.reveal()
            if values[0][-4:] != values[1][-4:]:
                broken.append(str(values))

    threads = [threading.Thread(target=look) for _ in range(50)]
    for thread in threads:
        thread.start()
    for number in range(1, 30):
        store.reached.clear()
        rotating.now += TTL
        store.values[aws("anneal")] = json.dumps({"hook": f"{OLD}-{number:04}", "token": f"{NEW}-{number:04}"})
        assert store.reached.wait(PATIENCE)
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    rotating.now += TTL
    assert not broken
    assert rotating.hooks() == [f"{OLD}-0029"]
