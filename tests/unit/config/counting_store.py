"""A store of secrets that counts its questions, and a rotation over it with a clock that a test moves."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from handler.config.git_settings import AwsSecret, SecretRef, WebhookSecrets
from handler.config.remote_secrets import Fetch, SecretClocks
from handler.config.secret_rotation import Rotation
from handler.config.settings import Settings, WebhookSettings
from handler.model.errors import SecretUnavailable
from tests.patience import PATIENCE

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
        assert self.gate.wait(PATIENCE)
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
