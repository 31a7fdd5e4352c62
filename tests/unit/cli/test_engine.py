"""What the worker process of `serve`, `work` and `run` resolves and knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.app.promotions import promoters_of
from handler.cli.engine import clock_engine, engine
from handler.cli.output import Output
from handler.cli.session import Session
from handler.config.git_settings import BasicAuth, RepositoryAuth, SecretRef, WebhookSecrets
from handler.config.settings import Settings, Target, WebhookSettings
from tests.fakes.engine import SHOP
from tests.unit.engine.promoting_targets import following


def test_webhook_secrets_are_resolved_by_the_web_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.app.log.configure", lambda **_: None)
    monkeypatch.delenv("ANNEAL_QUEUE_URL", raising=False)
    monkeypatch.delenv("ANNEAL_TEST_NOWHERE", raising=False)
    settings = Settings((), webhooks=WebhookSettings(WebhookSecrets((SecretRef(env="ANNEAL_TEST_NOWHERE"),))))
    parts = engine(Session(Output(), {})).build(settings)
    assert parts.requests() == 0


def test_a_target_that_runs_alone_by_the_clock_knows_all_others_and_needs_no_credential_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.app.log.configure", lambda **_: None)
    monkeypatch.delenv("ANNEAL_TEST_NOWHERE", raising=False)
    handlers: list[Handler] = []

    def made(*given: Any, **named: Any) -> Handler:
        handlers.append(Handler(*given, **named))
        return handlers[0]

    monkeypatch.setattr("handler.cli.engine.Handler", made)
    unsigned = replace(SHOP, auth=RepositoryAuth(basic=BasicAuth("ada", SecretRef(env="ANNEAL_TEST_NOWHERE"))))
    early = [Target(name, unsigned, (name,)) for name in ("early-eu", "early-us")]
    late = following("late", "early-*")
    session = Session(Output(), {})
    session.settings = Settings((*early, late))
    clock_engine(session).build(replace(session.settings, targets=(late,), drift_interval=10_000_000.0))
    assert handlers[0]._options.lives_on, "it counts the grace of orphans from its own first sight"
    assert promoters_of(handlers[0], late).names == ("early-eu", "early-us")
    assert handlers[0].settings.drift_interval == session.settings.drift_interval, "health that is older proves nothing"
