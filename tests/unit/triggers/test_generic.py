"""The generic delivery: ours, so nothing in it may be misspelt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.errors import BadPayload
from handler.model.event import Event, RefChange
from tests.fakes.host_webhooks import COMMIT, headers, read

URL = "https://git.example.com/acme/shop.git"
PUSH = {"repository": URL, "ref": "refs/heads/main", "after": COMMIT}


def test_a_push_is_a_repository_a_ref_and_a_commit() -> None:
    assert read("generic", json.dumps(PUSH).encode()) == Event(
        "generic", "push", "0f6b4a8e-9a11", (URL,), (RefChange("refs/heads/main", COMMIT),)
    )


def test_the_delivery_is_named_in_the_payload_or_by_a_header() -> None:
    body = json.dumps(PUSH | {"deliveryId": "build-7", "actor": "ci"}).encode()
    found = read("generic", body)
    assert (found.delivery, found.actor) == ("build-7", "ci")
    sent = headers("generic", body)
    del sent["X-Delivery-Id"]
    assert read("generic", body, sent).delivery == "build-7"


@pytest.mark.parametrize("key", ["Ref", "commit", "reff", "é", "\x1b[31m", "k" * 1000])
def test_an_unknown_key_is_refused_by_name(key: str) -> None:
    with pytest.raises(BadPayload, match="unknown key") as raised:
        read("generic", json.dumps(PUSH | {key: "x"}).encode())
    assert ascii(key[:64]) in str(raised.value)
    assert "known are repository, ref, after, actor, deliveryId" in str(raised.value)


@pytest.mark.parametrize(
    "odd",
    [
        {"repository": None},
        {"repository": ""},
        {"repository": {"clone_url": URL}},
        {"repository": "h" * 3000},
        {"ref": None},
        {"ref": "main"},
        {"after": "main"},
        {"after": COMMIT.upper()},
        {"actor": 1},
        {"deliveryId": "a b"},
        {"deliveryId": 1},
    ],
)
def test_a_push_of_another_shape_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(BadPayload):
        read("generic", json.dumps(PUSH | odd).encode())
