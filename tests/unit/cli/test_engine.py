"""What the worker process of `serve` and `work` resolves."""

from __future__ import annotations

import pytest

from handler.cli.engine import engine
from handler.cli.output import Output
from handler.cli.session import Session
from handler.config.git_settings import SecretRef, WebhookSecrets
from handler.config.settings import Settings, WebhookSettings


def test_webhook_secrets_are_resolved_by_the_web_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.app.log.configure", lambda _mask, **_: None)
    monkeypatch.delenv("ANNEAL_QUEUE_URL", raising=False)
    monkeypatch.delenv("ANNEAL_TEST_NOWHERE", raising=False)
    settings = Settings((), webhooks=WebhookSettings(WebhookSecrets((SecretRef(env="ANNEAL_TEST_NOWHERE"),))))
    parts = engine(Session(Output(), {})).build(settings)
    assert parts.requests() == 0
