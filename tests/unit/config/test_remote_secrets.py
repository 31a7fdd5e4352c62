"""Secrets of stores: asked once for what several references share, again when they are old, and no process waits long for one."""

from __future__ import annotations

import itertools
import json
import logging
from dataclasses import replace

import pytest

from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, SecretRef, WebhookSecrets
from handler.config.remote_secrets import PAUSES, SecretClocks, whole
from handler.config.secret_rotation import EVERY, Rotation
from handler.config.secrets import resolve_all
from handler.config.settings import ReplaySettings, ReplayToken, Settings, Target, WebhookSettings
from handler.model.errors import SecretUnavailable
from tests.unit.config.counting_store import HOOK, NEW, OLD, TTL, Rotating, Store, aws, hooked
from tests.unit.rows import each_row


def test_a_stores_value_is_asked_for_again_only_after_the_interval() -> None:
    store = Store({HOOK: OLD})
    rotating = Rotating(hooked(HOOK), store)
    store.values[HOOK] = NEW
    for rotating.now in (EVERY, TTL / 2, TTL - 1):
        assert rotating.hooks() == [OLD]
    assert store.asked[HOOK] == 1
    rotating.now = TTL
    assert rotating.hooks() == [NEW]
    assert store.asked[HOOK] == 2


@each_row("running", [0.05, EVERY])
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


def test_two_versions_of_a_remote_secret_are_valid_until_the_old_ones_stage_ends(caplog: pytest.LogCaptureFixture) -> None:
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


def test_a_lone_surrogate_in_one_secret_stops_no_other_rotation() -> None:
    hook, password = SecretRef(aws_parameter="/hook"), aws("git", "password")
    auth = RepositoryAuth(BasicAuth("oauth2", password))
    target = Target("shop", Repository("https://git.example.com/shop.git", auth=auth), ("shop",))
    settings = Settings((target,), webhooks=WebhookSettings(WebhookSecrets((hook,))), secrets_interval=TTL)
    held = {hook: "CANARY-old-webhook-secret", aws("git"): json.dumps({"password": "CANARY-old"})}
    now = [0.0]
    rotation = Rotation(settings, {}, fetch=lambda ref: held[ref], clocks=SecretClocks(lambda: now[0]))
    held |= {hook: "CANARY-new-webhook-secret", aws("git"): '{"password": "CANARY-\\ud800"}'}
    for _ in range(2):
        now[0] += TTL
        (accepted,) = rotation.webhook("github")
        assert (accepted.secret.reveal(), rotation.read(password).reveal()) == ("CANARY-new-webhook-secret", "CANARY-old")
    held[aws("git")] = json.dumps({"password": "CANARY-new"})
    now[0] += TTL
    assert rotation.read(password).reveal() == "CANARY-new"


def test_a_text_that_is_none_is_an_error_of_its_own_and_isnt_quoted() -> None:
    settings = Settings((), webhooks=WebhookSettings(WebhookSecrets((aws("odd"),))))
    with pytest.raises(SecretUnavailable) as caught:
        Rotation(settings, {}, fetch=lambda _: "CANARY\udcff")
    assert str(caught.value) == "webhooks.github.secrets: AWS secret odd is not UTF-8 text"
