"""Azure DevOps deliveries: a password, and a list of refs."""

from __future__ import annotations

import base64
import json

import pytest

from handler.config.secrets import Secret
from handler.model.errors import BadPayload
from handler.triggers import azuredevops
from tests.fakes.host_webhooks import KEYS, PUSHES, headers, read
from tests.unit.rows import each_row

PASSWORD = KEYS["AZUREDEVOPS"]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def proves(value: str) -> bool:
    return azuredevops.proves({"Authorization": value}, b"", Secret(PASSWORD))


@pytest.mark.parametrize(
    "value", [f"Basic {encoded(f'hooks:{PASSWORD}')}", f"basic  {encoded(f':{PASSWORD}')}", f"BASIC {encoded(f'é:{PASSWORD}')}"]
)
def test_the_basic_auth_password_is_the_webhook_secret_for_any_user(value: str) -> None:
    assert proves(value)


RIGHT = encoded(f"hooks:{PASSWORD}")


@each_row(
    "value",
    [
        "",
        "Basic",
        "Basic ",
        RIGHT,
        f"Bearer {RIGHT}",
        f"Basic{RIGHT}",
        f" Basic {RIGHT}",
        f"Basic {RIGHT} ",
        f"Basic {RIGHT},Basic {RIGHT}",
        f"Basic {RIGHT}\n",
        f"Basic {encoded(PASSWORD)}",
        f"Basic {encoded(f'{PASSWORD}:')}",
        f"Basic {encoded(f'{PASSWORD}:x')}",
        f"Basic {encoded(f'hooks:{PASSWORD}x')}",
        f"Basic {encoded(f'hooks:x:{PASSWORD}')}",
        f"Basic hooks:{PASSWORD}",
        f"Ba\u017fic {RIGHT}",
        "Basic é",
        "Basic A",
        "Basic " + "A" * 10240,
        "Basic \ud800",
    ],
)
def test_any_other_basic_auth_password_is_refused(value: str) -> None:
    assert not proves(value)


def changed(**resource: object) -> bytes:
    document = PUSHES["azuredevops"].document
    document["resource"] |= resource
    return json.dumps(document).encode()


def test_a_subscription_that_sends_too_little_is_told_so() -> None:
    body = json.dumps({"eventType": "git.push", "resource": {"url": "https://git.example.com/x"}}).encode()
    with pytest.raises(BadPayload, match="Resource details to send"):
        read("azuredevops", body)
    with pytest.raises(BadPayload, match="Resource details to send"):
        read("azuredevops", b'{"eventType": "git.push", "resource": null}')


def test_the_event_is_named_in_the_payload_when_no_header_does() -> None:
    body = PUSHES["azuredevops"].body
    sent = {"Authorization": headers("azuredevops", body)["Authorization"]}
    assert read("azuredevops", body, sent).delivery == "3c7e2b41-69d4-4b1d-9064-3e3b97e84004"


def test_the_display_name_stands_in_for_a_missing_user_name() -> None:
    assert read("azuredevops", changed(pushedBy={"displayName": "Ada"})).actor == "Ada"


@pytest.mark.parametrize(
    "odd",
    [
        {"refUpdates": {}},
        {"refUpdates": [None]},
        {"refUpdates": [{}]},
        {"refUpdates": [{"name": "main", "newObjectId": "a" * 40}]},
        {"refUpdates": [{"name": "refs/heads/main", "newObjectId": 7}]},
        {"repository": None},
        {"repository": {"remoteUrl": ""}},
        {"pushedBy": "ada"},
    ],
)
def test_a_push_of_another_shape_is_refused(odd: dict[str, object]) -> None:
    with pytest.raises(BadPayload):
        read("azuredevops", changed(**odd))
