"""Type confusion: whatever a payload or its headers hold, the outcome is an Event, BadPayload or BadSignature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handler.model.errors import BadPayload, BadSignature
from handler.model.event import Event
from handler.triggers import WEBHOOKS, codecommit, payload
from tests.fakes import host_webhooks
from tests.fakes.host_webhooks import KEYS, PROOF, PROVIDERS, PUSHES, SAMPLES
from tests.unit.triggers.codecommit_events import EVENTS
from tests.unit.triggers.codecommit_events import sample as codecommit_sample
from tests.unit.triggers.odd_payloads import ODD, places, with_odd


def end(read: Callable[..., Event], *given: Any) -> str:
    """Return how a delivery ends, and what is wrong with an end that isn't one of the three."""
    try:
        event = read(*given)
    except (BadPayload, BadSignature) as refusal:
        return refusal.code if len(str(refusal)) < 400 else f"a long refusal: {refusal}"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return repr(error)
    return "event" if sound(event) else f"unsound: {event}"


def sound(event: Event) -> bool:
    """Whether every field has the type that it says: what follows never looks again."""
    texts = [event.kind, event.delivery, event.actor, event.note, event.comment, *event.urls]
    texts += [text for change in event.changes for text in (change.ref, change.after)]
    flags = [event.more, *(change.deleted for change in event.changes)]
    numbered = type(event.pull_request) is int and (0 < event.pull_request < 10**9) is (event.kind == "pull-request")
    named = bool(event.urls) or event.kind not in ("push", "pull-request")
    return numbered and named and {type(text) for text in texts} == {str} and {type(flag) for flag in flags} == {bool}


def odd_documents(document: Any) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield a document with each of its nodes replaced by each odd value, after the node and the value; the whole is always an object."""
    for path in places(document)[1:]:
        for odd in ODD:
            yield path, odd, with_odd(document, path, odd)


def odd_shapes(document: Any) -> list[str]:
    """Return the providers that name the event of a document by headers that are no text."""
    found = {name: trigger.shape(document) for name, trigger in WEBHOOKS.items()}
    return [name for name, shape in found.items() if shape and {type(value) for value in shape.values()} != {str}]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_node_of_a_payload_may_be_anything_or_missing(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are handed over as they are read from JSON: what is none isn't looked for here."""
    now: Any = None
    monkeypatch.setattr(payload, "read", lambda _: now)
    ends, faults = set(), []
    for sample in (each for each in SAMPLES if each.provider == provider):
        sent = host_webhooks.headers(provider, b"", sample.event)
        for path, odd, now in odd_documents(sample.document):
            ends.add(found := end(WEBHOOKS[provider].read, sent, b""))
            if found not in ("event", "bad-payload") or (len(path) <= 2 and odd_shapes(now)):
                faults.append((str(sample), path, odd, found))
    assert faults == []
    assert ends == {"event", "bad-payload"}


def test_any_node_of_a_codecommit_event_may_be_anything_or_missing() -> None:
    events = {path.stem: odd_documents(codecommit_sample(path.stem)) for path in EVENTS.glob("*.json")}
    ends = [(name, path, odd, end(codecommit.read, document)) for name, odd_ones in events.items() for path, odd, document in odd_ones]
    assert [each for each in ends if each[-1] not in ("event", "bad-payload")] == []


SPELLINGS = ("", "sha1=" + "a" * 40, "sha256=" + "A" * 64, "v1,", "v1 é,", "Basic", "nan", "\ud800", "é", "a" * 10240)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_header_ends_as_an_event_bad_payload_or_bad_signature(provider: str) -> None:
    sample, faults = PUSHES[provider], []
    known = host_webhooks.accepted(KEYS[provider.upper()], KEYS["SIGNING"])
    for signing in ("", KEYS["SIGNING"])[: 1 + (provider == "gitlab")]:
        sent = host_webhooks.headers(provider, sample.body, sample.event, signing)
        for name, right in sent.items():
            for value in (*SPELLINGS, f"{right},{right}", right.upper()):
                found = end(lambda headers: WEBHOOKS[provider].verified(headers, sample.body, known)[0], sent | {name: value})
                unproven = name in (PROOF[provider], "webhook-signature") and value != right
                if found not in (("bad-signature",) if unproven else ("event", "bad-payload", "bad-signature")):
                    faults.append((name, value, found))
    assert faults == []
