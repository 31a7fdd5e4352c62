"""What Python's JSON reader accepts and no git host sends."""

from __future__ import annotations

import pytest

from handler.model.errors import BadPayload
from handler.triggers import payload
from tests.unit.rows import each_row


@each_row(
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
        (b'{"a":' * (payload.MAX_DEPTH + 1) + b"1" + b"}" * (payload.MAX_DEPTH + 1), "deep"),
        (b'{"a":' + b"[" * payload.MAX_DEPTH + b"]" * payload.MAX_DEPTH + b"}", "deep"),
        (b'{"a": [' + b"[]," * 500_000 + b"1]}", "too many"),
        (b'{"a": [' + b'{"":[]},' * 200_000 + b"1]}", "too many"),
        (b"[]", "object"),
        (b"null", "object"),
        (b'"x"', "object"),
    ],
)
def test_a_malformed_payload_is_refused_with_a_short_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadPayload, match=reason) as raised:
        payload.read(body)
    assert len(str(raised.value)) < 250


def test_what_is_as_deep_as_it_may_be_is_read() -> None:
    assert payload.read(b'{"a":' * payload.MAX_DEPTH + b"1" + b"}" * payload.MAX_DEPTH)


def test_ordinary_json_is_read() -> None:
    assert payload.read('{"a": [1, 1.5, "é😀\\ud83d\\ude00", null]}'.encode()) == {"a": [1, 1.5, "é😀😀", None]}


@each_row("odd", [None, "12", 0, -1, True, 12.0, payload.MAX_NUMBER + 1, [12], {"id": 12}])
def test_a_number_counts_from_one(odd: object) -> None:
    assert payload.number({"id": payload.MAX_NUMBER}, "id") == payload.MAX_NUMBER
    with pytest.raises(BadPayload, match=f"id is missing or no number from 1 to {payload.MAX_NUMBER}"):
        payload.number({"id": odd}, "id")


@each_row("odd", ["", "PUSH", "push,push", "p" * 129, "push\n", "é", "push\ud800"])
def test_what_is_no_name_of_an_event_is_refused(odd: str) -> None:
    assert payload.event_name("repo:push", "X-Event") == "repo:push"
    with pytest.raises(BadPayload, match="X-Event is missing or no event name"):
        payload.event_name(odd, "X-Event")


@each_row("odd", [7, True, ["x"], {}])
def test_what_is_no_text_is_refused(odd: object) -> None:
    with pytest.raises(BadPayload, match="body is not a string"):
        payload.text({"body": odd}, "body")
