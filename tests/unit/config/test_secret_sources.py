"""What a store's answer must be to be a secret: a text, a key of a JSON object, not too long, never quoted."""

from __future__ import annotations

import json

import pytest

from handler.config.git_settings import AwsSecret, SecretRef
from handler.config.secret_sources import LARGEST
from handler.config.secrets import resolve
from handler.model.errors import SecretUnavailable

VALUE = "CANARY-secret-value"
HOOK = SecretRef(aws_parameter="/anneal/hook")
KEYED = SecretRef(aws_secrets_manager=AwsSecret("a", "k"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CANARY no json", "isn't JSON, so it has no keys"),
        ('["CANARY"]', "is no JSON object"),
        ('{"CANARY": "x"}', "has no key k"),
        ('{"k": {"CANARY": 1}}', "its key k is no text"),
        ("[" * 100_000, "isn't JSON, so it has no keys"),
        ('{"k": " "}', "is empty"),
        (json.dumps({"k": "x" * (LARGEST + 1)}), f"is larger than {LARGEST} bytes"),
    ],
)
def test_a_document_without_the_key_is_never_quoted(text: str, problem: str) -> None:
    with pytest.raises(SecretUnavailable) as caught:
        resolve(KEYED, {}, lambda _: text)
    assert str(caught.value).startswith(f"AWS secret a, key k: {problem}")
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_newline_at_the_end_is_dropped_as_of_a_file(end: str) -> None:
    assert resolve(HOOK, {}, lambda _: VALUE + end).reveal() == VALUE
