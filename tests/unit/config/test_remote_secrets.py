"""Secrets of stores: asked once for what several references share, again when they are old, and waited for by nobody for long."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from handler.config.git_settings import AwsSecret, BasicAuth, Repository, RepositoryAuth, SecretRef, WebhookSecrets
from handler.config.remote_secrets import PAUSES, Fetch, SecretClocks, whole
from handler.config.secret_rotation import EVERY, Rotation
from handler.config.secrets import resolve_all
from handler.config.settings import ReplaySettings, ReplayToken, Settings, Target, WebhookSettings
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
        clocks = SecretClocks(lambda: self.now, lambda: self.now + self.frozen)
        self.rotation = Rotation(settings, {}, fetch=store, clocks=clocks)

    def hooks(self) -> list[str]:
        return [accepted.secret.reveal() for accepted in self.rotation.webhook("github")]


def hooked(*refs: SecretRef) -> Settings:
    return Settings((), webhooks=WebhookSettings(WebhookSecrets(refs)), secrets_interval=TTL)


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
    rotating.now, rotating.frozen = 3 * running, 2 * TTL + PAUSES.first
    assert rotating.hooks() == [OLD], "nor does a failure count for longer"


def test_keys_of_one_secret_are_one_question_and_are_rotated_together() -> None:
    hook, token, password = (aws("anneal", key) for key in ("hook", "token", "password"))
    repository = Repository("https://git.example.com/x.git", auth=RepositoryAuth(BasicAuth("oauth2", password)))
    settings = replace(hooked(hook), targets=(Target("x", repository, ("x",)),), replay=ReplaySettings((ReplayToken("ci", token),)))

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
    assert pauses[0] == PAUSES.first
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSES.longest
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "ssm:GetParameter" in str(vars(warning)["fields"])
    store.values[HOOK] = NEW
    rotating.now += PAUSES.longest
    assert rotating.hooks() == [NEW]


def test_a_value_that_was_refused_is_asked_for_before_its_turn_but_not_each_time() -> None:
    password = aws("git", "password")
    repository = Repository("https://git.example.com/x.git", auth=RepositoryAuth(BasicAuth("oauth2", password)))
    store = Store({aws("git"): json.dumps({"password": OLD})})
    rotating = Rotating(Settings((Target("x", repository, ("x",)),), secrets_interval=TTL), store)
    store.values[aws("git")] = json.dumps({"password": NEW})
    rotating.now = PAUSES.first - 1
    assert rotating.rotation.again(password).reveal() == OLD
    rotating.now = PAUSES.first
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
