"""Secrets of stores: asked once for what several references share, again when they are old, and waited for by nobody for long."""

from __future__ import annotations

import itertools
import json
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from handler.config.git import AwsSecret, BasicAuth, Repository, RepositoryAuth, SecretRef, WebhookSecrets
from handler.config.remote import AT_ONCE, FIRST_PAUSE, LONGEST_PAUSE, Clocks, Fetch, Remote, whole
from handler.config.rotation import EVERY, Rotation
from handler.config.secrets import resolve_all
from handler.config.settings import Replay, ReplayToken, Settings, Target, Webhooks
from handler.model.errors import SecretUnavailable

TTL = 60.0
OLD, NEW = "CANARY-old-secret-value", "CANARY-new-secret-value"
HOOK = SecretRef(aws_parameter="/anneal/hook")


def aws(name: str, key: str = "", stage: str = "AWSCURRENT") -> SecretRef:
    return SecretRef(aws_secrets_manager=AwsSecret(name, key, stage))


class Store:
    """A store that counts its questions. A value of None: no such version; missing: an error. `gate` holds its answers back."""

    def __init__(self, values: Mapping[SecretRef, str | None]) -> None:
        self.values = dict(values)
        self.asked: Counter[SecretRef] = Counter()
        self.gate = threading.Event()
        self.gate.set()
        self.reached = threading.Event()

    def __call__(self, ref: SecretRef) -> str | None:
        self.asked[ref] += 1
        self.reached.set()
        assert self.gate.wait(30)
        if ref not in self.values:
            raise SecretUnavailable.of(str(ref), "can't be read", fix="allow it ssm:GetParameter")
        return self.values[ref]


class Rotating:
    """A rotation over a store, and the clock that the test moves."""

    def __init__(self, settings: Settings, store: Fetch) -> None:
        self.now = self.frozen = 0.0
        clocks = Clocks(lambda: self.now, lambda: self.now + self.frozen)
        self.rotation = Rotation(settings, {}, fetch=store, clocks=clocks)

    def hooks(self) -> list[str]:
        return [accepted.secret.reveal() for accepted in self.rotation.webhook("github")]


def hooked(*refs: SecretRef) -> Settings:
    return Settings((), webhooks=Webhooks(WebhookSecrets(refs)), secrets_interval=TTL)


def test_a_value_is_asked_for_again_only_when_it_is_old() -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.values[HOOK] = NEW
    for rotating.now in (EVERY, TTL / 2, TTL - 1):
        assert rotating.hooks() == [OLD]
    assert store.asked[HOOK] == 1
    rotating.now = TTL
    assert rotating.hooks() == [NEW]
    assert store.asked[HOOK] == 2


@pytest.mark.parametrize("running", [0.05, EVERY])
def test_a_function_that_was_frozen_asks_again_although_its_clock_stood_still(running: float) -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.values[HOOK] = NEW
    rotating.now, rotating.frozen = running, TTL
    assert rotating.hooks() == [NEW]
    del store.values[HOOK]
    rotating.now, rotating.frozen = 2 * running, 2 * TTL
    assert rotating.hooks() == [NEW]
    store.values[HOOK] = OLD
    rotating.now, rotating.frozen = 3 * running, 2 * TTL + FIRST_PAUSE
    assert rotating.hooks() == [OLD], "nor does a failure count for longer"


def test_keys_of_one_secret_are_one_question_and_are_rotated_together() -> None:
    hook, token, password = (aws("anneal", key) for key in ("hook", "token", "password"))
    repository = Repository("https://git.example.com/x.git", auth=RepositoryAuth(BasicAuth("oauth2", password)))
    settings = replace(hooked(hook), targets=(Target("x", repository, ("x",)),), replay=Replay((ReplayToken("ci", token),)))

    def document(value: str) -> str:
        return json.dumps({key: f"{value}-{key}" for key in ("hook", "token", "password", "other")})

    store = Store({aws("anneal"): document(OLD)})
    rotating = Rotating(settings, store)
    assert store.asked == {aws("anneal"): 1}
    assert (rotating.hooks(), rotating.rotation.read(password).reveal()) == ([f"{OLD}-hook"], f"{OLD}-password")
    store.values[aws("anneal")] = document(NEW)
    rotating.now = TTL
    assert rotating.rotation.token(f"{NEW}-token".encode()) == settings.replay.tokens[0]
    assert (rotating.hooks(), store.asked[aws("anneal")]) == ([f"{NEW}-hook"], 2)
    text = " ".join(f"{value}-{key}" for value in (OLD, NEW) for key in ("hook", "token", "password"))
    assert "CANARY" not in rotating.rotation.mask(text), "what was there, and what is there"


def test_two_versions_are_valid_at_once_and_the_old_one_ends_with_its_stage(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    current, previous = aws("hook"), aws("hook", stage="AWSPREVIOUS")
    store = Store({current: OLD, previous: None})
    rotating = Rotating(hooked(current, previous), store)
    assert rotating.hooks() == [OLD]
    for turn in range(1, 4):
        rotating.now = turn * TTL
        assert rotating.hooks() == [OLD]
    said = [record for record in caplog.records if "no version of this stage" in record.message]
    assert [vars(record)["fields"] for record in said] == [{"secret": "AWS secret hook, AWSPREVIOUS"}]
    store.values |= {current: NEW, previous: OLD}
    rotating.now += TTL
    assert rotating.hooks() == [NEW, OLD]
    store.values[previous] = None
    rotating.now += TTL
    assert rotating.hooks() == [NEW]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "CANARY" not in str([vars(record) for record in caplog.records])


def test_a_git_password_without_such_a_version_is_missing() -> None:
    ref = aws("git", stage="AWSPREVIOUS")
    auth = RepositoryAuth(BasicAuth("oauth2", ref))
    settings = Settings((Target("x", Repository("https://git.example.com/x.git", auth=auth), ("x",)),))
    with pytest.raises(SecretUnavailable, match=r"basic\.password: AWS secret git, AWSPREVIOUS has no such version"):
        resolve_all(settings, {}, fetch=Store({ref: None}))


def test_a_first_failure_refuses_to_start_naming_all() -> None:
    refs = (HOOK, aws("missing", "key"), SecretRef(kubernetes_secret="a/b/c"), aws("short"))
    with pytest.raises(SecretUnavailable) as caught:
        resolve_all(hooked(*refs), {}, fetch=Store({aws("short"): "CANARY"}))
    lines = str(caught.value).splitlines()
    assert lines[:3] == [f"webhooks.github.secrets: {whole(ref)} can't be read; allow it ssm:GetParameter" for ref in refs[:3]]
    assert "AWS secret short is shorter than 16 characters" in lines[3]
    assert "CANARY" not in str(caught.value)


def test_a_process_without_stores_says_so() -> None:
    with pytest.raises(SecretUnavailable, match="AWS parameter /anneal/hook can't be read here"):
        resolve_all(hooked(HOOK), {})
    resolve_all(hooked(HOOK), {}, needs={"git", "tokens"})


def test_a_failure_keeps_the_value_is_said_once_and_asked_about_later_and_later(caplog: pytest.LogCaptureFixture) -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    del store.values[HOOK]
    moments = []
    for second in range(int(TTL), 3600):
        rotating.now = float(second)
        before = store.asked[HOOK]
        assert rotating.hooks() == [OLD]
        if store.asked[HOOK] > before:
            moments.append(second)
    pauses = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert pauses[0] == FIRST_PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "ssm:GetParameter" in str(vars(warning)["fields"])
    store.values[HOOK] = NEW
    rotating.now += LONGEST_PAUSE
    assert rotating.hooks() == [NEW]


def test_a_value_that_was_refused_is_asked_for_before_its_turn_but_not_each_time() -> None:
    password = aws("git", "password")
    repository = Repository("https://git.example.com/x.git", auth=RepositoryAuth(BasicAuth("oauth2", password)))
    store = Store({aws("git"): json.dumps({"password": OLD})})
    rotating = Rotating(Settings((Target("x", repository, ("x",)),), secrets_interval=TTL), store)
    store.values[aws("git")] = json.dumps({"password": NEW})
    rotating.now = FIRST_PAUSE - 1
    assert rotating.rotation.again(password).reveal() == OLD
    rotating.now = FIRST_PAUSE
    assert rotating.rotation.read(password).reveal() == OLD
    assert [rotating.rotation.again(password).reveal() for _ in range(5)] == [NEW] * 5
    assert store.asked[aws("git")] == 2


def test_a_mistake_of_a_store_keeps_the_value_and_is_named_by_its_kind_only(caplog: pytest.LogCaptureFixture) -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)

    def mistaken(_ref: SecretRef) -> str:
        raise ValueError(OLD)

    rotating.rotation._remote._fetch = mistaken
    rotating.now = TTL
    assert rotating.hooks() == [OLD]
    assert "can't be read: ValueError" in str([vars(record) for record in caplog.records])
    assert "CANARY" not in str([vars(record) for record in caplog.records])


def test_a_short_new_value_isnt_taken(caplog: pytest.LogCaptureFixture) -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.values[HOOK] = "short"
    rotating.now = TTL
    assert rotating.hooks() == [OLD]
    assert "is shorter than 16 characters" in str([vars(record) for record in caplog.records])


def test_while_a_store_hangs_one_waits_a_little_and_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote.Remote.renew.__defaults__", (0.01,))
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.gate.clear()
    store.reached.clear()
    store.values[HOOK] = NEW
    for rotating.now in (TTL, TTL + EVERY, TTL * 2, TTL * 3):
        assert rotating.hooks() == [OLD]
    assert store.reached.wait(30)
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
        assert remote._answered.wait_for(lambda: not remote._asked, 30)


def test_one_secret_that_hangs_keeps_no_other_from_rotating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote.Remote.renew.__defaults__", (0.01,))
    sound, hung = (SecretRef(aws_parameter=f"/anneal/{name}") for name in ("sound", "hung"))
    store, gate = Store({sound: f"{OLD}-sound", hung: f"{OLD}-hung"}), threading.Event()

    def fetch(ref: SecretRef) -> str | None:
        value = store(ref)
        assert ref == sound or store.asked[hung] == 1 or gate.wait(30)
        return value

    rotating = Rotating(hooked(sound, hung), fetch)
    for turn in range(1, 4):
        store.values |= {sound: f"{NEW}-sound-{turn}", hung: f"{NEW}-hung"}
        rotating.now = turn * TTL
        rotating.hooks()
        answers(rotating.rotation, sound)
        rotating.now += EVERY
        assert rotating.hooks() == [f"{NEW}-sound-{turn}", f"{OLD}-hung"]
    assert store.asked[hung] == 2, "what is on its way isn't asked for again"
    gate.set()
    answered(rotating.rotation)
    rotating.now += EVERY
    assert rotating.hooks()[1] == f"{NEW}-hung"


def answers(rotation: Rotation, ref: SecretRef) -> None:
    """Return when this isn't on its way."""
    remote = rotation._remote
    with remote._answered:
        assert remote._answered.wait_for(lambda: ref not in remote._asked, 30)


def test_a_start_names_what_didnt_answer_in_time_and_goes_on_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote.START", 0.05)
    monkeypatch.setattr("handler.config.remote.TURN", 0.01)
    refs = [SecretRef(aws_parameter=f"/anneal/{number}") for number in range(AT_ONCE + 2)]
    store = Store(dict.fromkeys(refs, OLD))
    store.gate.clear()
    with pytest.raises(SecretUnavailable) as caught:
        Rotation(hooked(*refs), {}, fetch=store)
    store.gate.set()
    assert str(caught.value).count("its store didn't answer in 0.05 s") == len(refs)


def test_more_that_hang_than_are_asked_at_once_keep_no_other_from_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.config.remote.TURN", 0.01)
    gate, told = threading.Event(), threading.Event()
    refs = [SecretRef(aws_parameter=f"/anneal/{number}") for number in range(AT_ONCE + 1)]

    def fetch(ref: SecretRef) -> str:
        if ref == refs[-1]:
            told.set()
        else:
            assert gate.wait(30)
        return OLD

    starting = threading.Thread(target=Remote, args=(refs, fetch, TTL))
    starting.start()
    assert told.wait(30)
    gate.set()
    starting.join(30)


HANGING = """
import sys, threading, time
from handler.config import remote
from handler.config.git import SecretRef
remote.START = 0.01
remote.Remote([SecretRef(aws_parameter="/anneal/hung")], lambda ref: threading.Event().wait(), 60.0)
"""


def test_a_store_that_hangs_keeps_no_process_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], timeout=60, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_while_one_asks_the_others_read_without_waiting() -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.reached.clear()
    store.gate.clear()
    rotating.now = TTL
    seen: list[list[str]] = []
    asking = threading.Thread(target=lambda: seen.append(rotating.hooks()))
    asking.start()
    assert store.reached.wait(30)
    others = [threading.Thread(target=lambda: seen.append(rotating.hooks())) for _ in range(20)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join(30)
    assert seen == [[OLD]] * 20
    store.gate.set()
    asking.join(30)


def test_nothing_shows_what_was_told() -> None:
    remote = Remote([HOOK], Store({HOOK: OLD}), TTL)
    assert remote(HOOK) == OLD
    assert "CANARY" not in f"{remote!r} {remote._told}"


def test_fifty_threads_see_whole_snapshots_while_a_store_rotates() -> None:
    """Argo CD's CVE-2025-55191: concurrent reads and writes of credentials crashed it."""
    hook, token = aws("anneal", "hook"), aws("anneal", "token")
    settings = replace(hooked(hook), replay=Replay((ReplayToken("ci", token),)))
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
            if values[0][-4:] != values[1][-4:] or rotating.rotation.mask(" ".join(values)) != "*** ***":
                broken.append(str(values))

    threads = [threading.Thread(target=look) for _ in range(50)]
    for thread in threads:
        thread.start()
    for number in range(1, 30):
        store.reached.clear()
        rotating.now += TTL
        store.values[aws("anneal")] = json.dumps({"hook": f"{OLD}-{number:04}", "token": f"{NEW}-{number:04}"})
        assert store.reached.wait(30)
    stop.set()
    for thread in threads:
        thread.join(60)
    rotating.now += TTL
    assert not broken
    assert rotating.hooks() == [f"{OLD}-0029"]
