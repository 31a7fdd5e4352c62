"""However a secret is written, it doesn't come through."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.config.masking import SHORTEST, Mask

VALUE = 'p@ss/wörd+with "quotes" & \\slashes?'


@pytest.mark.parametrize(
    "text",
    [
        VALUE,
        json.dumps({"password": VALUE}),
        json.dumps({"password": VALUE}, ensure_ascii=False),
        repr({"password": VALUE}),
        f"https://x:{quote(VALUE, safe='')}@git.example.com",
        f"https://x:{quote(VALUE)}@git.example.com",
        urlencode({"token": VALUE}),
        quote_plus(VALUE).lower() if quote_plus(VALUE).islower() else quote_plus(VALUE),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
        "Authorization: Basic " + base64.b64encode(f"oauth2:{VALUE}".encode()).decode(),
    ],
)
def test_every_spelling_is_masked(text: str) -> None:
    masked = Mask.of([VALUE], [("oauth2", VALUE)])(f"before {text} after")
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert masked.count("***") == 1
    assert not any(part in masked for part in ("wörd", "w\\u00f6rd", "slashes", "quotes"))


def test_a_percent_escape_in_lower_case_is_masked() -> None:
    assert Mask.of(["secret/value"])("secret%2fvalue") == "***"


def test_each_line_of_a_secret_is_masked() -> None:
    assert Mask.of(["first-line\nsecond-line"])("x first-line y second-line z") == "x *** y *** z"


def test_the_longest_secret_is_masked_first() -> None:
    assert Mask.of(["token", "token-and-more"])("token-and-more token") == "*** ***"


def test_text_without_secrets_stays() -> None:
    assert Mask.of([])("anything") == "anything"
    assert Mask.of(["x" * (SHORTEST - 1)])("xxx") == "xxx"


@given(st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=SHORTEST), st.text(), st.text())
def test_no_secret_survives_whatever_surrounds_it(secret: str, before: str, after: str) -> None:
    masked = Mask.of([secret])(before + secret + after)
    assert masked.count("***") >= 1
    assert secret not in masked
