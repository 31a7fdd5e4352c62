"""What is masked of a store's answer, and what an odd value in it stops."""

from __future__ import annotations

import json

import pytest

from handler.config.git_settings import AwsSecret, BasicAuth, Repository, RepositoryAuth, SecretRef, WebhookSecrets
from handler.config.remote_secrets import RemoteSecrets, SecretClocks
from handler.config.secret_mask import Mask
from handler.config.secret_rotation import Rotation
from handler.config.settings import Settings, Target, WebhookSettings
from handler.model.errors import SecretUnavailable

TTL = 60.0


def aws(name: str, key: str = "") -> SecretRef:
    return SecretRef(aws_secrets_manager=AwsSecret(name, key))


def test_only_what_is_referred_to_is_masked() -> None:
    document = json.dumps({"username": "anneal", "host": "github.com", "password": "CANARY-password"})
    RemoteSecrets([aws("git", "password")], lambda _: document, TTL)
    assert Mask()("anneal serves github.com by CANARY-password") == "anneal serves github.com by ***"


def test_a_whole_text_is_masked_also_where_it_is_a_document() -> None:
    document = json.dumps({"username": "anneal", "key": "CANARY"})
    RemoteSecrets([aws("git")], lambda _: document, TTL)
    assert Mask()(f"anneal {document}") == "anneal ***"


def test_of_a_kubeconfig_nothing_is_masked_here() -> None:
    RemoteSecrets([aws("prod")], lambda _: "apiVersion: v1\nkind: Config\n", TTL, masked=False)
    assert Mask()("apiVersion: v1, kind: Config") == "apiVersion: v1, kind: Config"


def test_half_a_character_in_one_secret_stops_no_other_ones_rotation() -> None:
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
