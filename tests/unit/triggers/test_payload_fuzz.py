"""Type confusion: whatever a signed payload or its headers hold, the outcome is an Event, BadPayload or BadSignature."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.model.errors import BadPayload, BadSignature
from handler.model.event import Event
from handler.triggers import WEBHOOKS
from tests.fakes import host_webhooks
from tests.fakes.host_webhooks import KEYS, PROOF, PROVIDERS, PUSHES, SAMPLES, Sample
from tests.unit.triggers.odd_payloads import DROPPED, ODD, places, with_odd


def written(document: Any) -> bytes:
    return json.dumps(document).replace("Infinity", "1e999").encode()


def outcome(provider: str, headers: Mapping[str, str], body: bytes) -> str:
    """Read a delivery as the door does; anything but the three outcomes is raised."""
    try:
        event, _ = WEBHOOKS[provider].verified(headers, body, host_webhooks.accepted(KEYS[provider.upper()], KEYS["SIGNING"]))
    except (BadPayload, BadSignature) as refusal:
        return quiet(refusal)
    assert sound(event)
    return "event"


def quiet(refusal: BadPayload | BadSignature) -> str:
    """Return the code of a refusal that is short and shows no secret."""
    assert len(str(refusal)) < 400
    assert not any(secret in str(refusal) for secret in KEYS.values())
    return refusal.code


def sound(event: Event) -> bool:
    """Whether every field has the type that it says: what follows never looks again."""
    texts = [event.kind, event.delivery, event.actor, event.note, event.comment, *event.urls]
    texts += [text for change in event.changes for text in (change.ref, change.after)]
    flags = [event.more, *(change.deleted for change in event.changes)]
    json.dumps(texts, ensure_ascii=False).encode()  # no lone surrogate
    numbered = type(event.pull_request) is int and (0 < event.pull_request < 10**9) is (event.kind == "pull-request")
    named = bool(event.urls) or event.kind not in ("push", "pull-request")
    return numbered and named and {type(text) for text in texts} == {str} and {type(flag) for flag in flags} == {bool}


FEW: tuple[object, ...] = (None, [], "", 0, DROPPED)
"""What each node of a payload may be that a host has sent: those are five times as long as our own."""


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_any_node_of_a_payload_may_be_anything_or_missing(sample: Sample) -> None:
    document = sample.document
    ends = set()
    for changed in (document, *(with_odd(document, path, odd) for path in places(document) for odd in (FEW if sample.headers else ODD))):
        body = written(changed)
        ends.add(outcome(sample.provider, host_webhooks.headers(sample.provider, body, sample.event), body))
    assert ends == {"event", "bad-payload"}


REAL = (
    ("github", "push", "push.json"),
    ("github", "push", "push-with-new-branch.json"),
    ("github", "push", "push-with-organization.json"),
    ("github", "ping", "ping.json"),
    ("github", "delete", "delete.json"),
    ("gitlab", "Push Hook", "push.json"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "event", "name"), REAL)
def test_any_node_of_a_recorded_payload_too(shared_data: Path, provider: str, event: str, name: str) -> None:
    document = json.loads((shared_data / "webhooks" / provider / name).read_bytes())
    ends = set()
    for path in places(document):
        for odd in FEW:
            body = written(with_odd(document, path, odd))
            ends.add(outcome(provider, host_webhooks.headers(provider, body, event), body))
    assert ends == {"event", "bad-payload"}


def test_no_recorded_payload_is_forgotten(shared_data: Path) -> None:
    on_disk = {(path.parent.name, path.name) for path in (shared_data / "webhooks").glob("*/*.json")}
    assert on_disk == {(provider, name) for provider, _, name in REAL}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_several_nodes_may_be_anything_at_once(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(SAMPLES))
    document = sample.document
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(places(document)))
        document = with_odd(document, path, data.draw(st.sampled_from(ODD) | JSON))
    body = written(document)
    assert outcome(sample.provider, host_webhooks.headers(sample.provider, body, sample.event), body) in {"event", "bad-payload"}


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    provider=st.sampled_from(PROVIDERS),
    body=st.binary(max_size=300).filter(lambda body: not re.match(rb"\s*\{\s*\}", body)),  # chance finds the empty object, which is JSON
    event=st.sampled_from(["push", "repo:push", "repo:refs_changed", "ping", "pull_request", "issue_comment", "pr:opened"]),
)
def test_random_bytes_with_a_good_signature_are_no_payload(provider: str, body: bytes, event: str) -> None:
    assert outcome(provider, host_webhooks.headers(provider, body, event), body) == "bad-payload"


SPELLINGS = ("", "sha1=" + "a" * 40, "sha256=" + "A" * 64, "v1,", "v1 é,", "Basic", "nan", "\ud800", "é", "a" * 10240)
HEADER = st.sampled_from(SPELLINGS) | st.text(st.characters(), max_size=80)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(data=st.data())
def test_any_headers_end_as_event_bad_payload_or_bad_signature(data: st.DataObject) -> None:
    provider = data.draw(st.sampled_from(PROVIDERS))
    sample = PUSHES[provider]
    signing = KEYS["SIGNING"] if provider == "gitlab" and data.draw(st.booleans()) else ""
    sent = host_webhooks.headers(provider, sample.body, sample.event, signing)
    name = data.draw(st.sampled_from(sorted(sent)))
    value = data.draw(HEADER | st.just(f"{sent[name]},{sent[name]}") | st.just(sent[name].upper()))
    end = outcome(provider, sent | {name: value}, sample.body)
    assert end in {"event", "bad-payload", "bad-signature"}
    if name in (PROOF[provider], "webhook-signature") and value != sent[name]:
        assert end == "bad-signature"


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    provider=st.sampled_from(PROVIDERS),
    headers=st.dictionaries(st.sampled_from(sorted({*PROOF.values(), "webhook-signature", "webhook-id", "webhook-timestamp"})), HEADER),
    body=st.binary(max_size=100),
)
def test_no_random_delivery_passes_its_signature_check(provider: str, headers: dict[str, str], body: bytes) -> None:
    assert outcome(provider, headers, body) == "bad-signature"


PUSHED = ("ref", "zen", "push", "eventKey", "eventType", "object_kind", "repository", "test")
SHAPED = (*PUSHED, "action", "number", "pull_request", "issue", "comment", "pullrequest")
"""Keys by which a payload's provider and event are known."""


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(document=st.dictionaries(st.sampled_from(SHAPED), JSON))
def test_any_document_has_a_shape_or_none(document: dict[str, Any]) -> None:
    for trigger in WEBHOOKS.values():
        shape = trigger.shape(document)
        assert shape is None or all(type(value) is str for value in shape.values())
