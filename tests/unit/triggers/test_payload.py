"""What Python's JSON reader accepts and no git host sends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handler.model.errors import BadPayload, BadSignature
from handler.triggers import TRIGGERS, payload
from tests.fakes.door import github_headers, gitlab_headers, known, mutations


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": "\\ud800"}', "not UTF-8"),
        (b'{"\\udfff": 1}', "not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 4301 + b"}", "too large"),
        (b'{"a": ' + b"9" * 21 + b"}", "too large"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"b": {"a": 1, "a": 1}}', "twice"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deep"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "deep"),
        (b"[]", "object"),
        (b"null", "object"),
        (b'"x"', "object"),
    ],
)
def test_is_refused_with_a_short_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadPayload, match=reason) as raised:
        payload.read(body)
    assert len(str(raised.value)) < 250


def test_ordinary_json_is_read() -> None:
    assert payload.read('{"a": [1, 1.5, "é😀\\ud83d\\ude00", null]}'.encode()) == {"a": [1, 1.5, "é😀😀", None]}


@pytest.mark.parametrize(
    ("provider", "event", "path"),
    [
        ("github", "push", "github/push.json"),
        ("github", "push", "github/push-with-new-branch.json"),
        ("github", "push", "github/push-with-organization.json"),
        ("github", "ping", "github/ping.json"),
        ("github", "delete", "github/delete.json"),
        ("gitlab", "", "gitlab/push.json"),
    ],
)
def test_type_confusion_ends_as_an_event_or_a_refusal(shared_data: Path, provider: str, event: str, path: str) -> None:
    document = json.loads((shared_data / "webhooks" / path).read_bytes())
    secret = known("GITHUB")
    ends = {"read": 0, "refused": 0}
    for odd in mutations(document):
        body = json.dumps(odd).replace("Infinity", "1e999").encode()
        headers = github_headers(body, event=event) if provider == "github" else gitlab_headers(secret.reveal())
        try:
            found = TRIGGERS[provider].parse(headers, body, [secret])
        except BadPayload:
            ends["refused"] += 1
        else:
            assert {type(found.ref), type(found.after), type(found.actor), *map(type, found.urls)} == {str}
            ends["read"] += 1
    assert min(ends.values()) > 0


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_no_headers_at_all_are_a_bad_signature(provider: str) -> None:
    with pytest.raises(BadSignature):
        TRIGGERS[provider].parse({}, b"{}", [known("GITHUB")])
