"""However a secret is written, it doesn't come through."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handler.config import secret_mask
from handler.config.secret_mask import SHORTEST, SHORTEST_PART, Mask, Opening, parts

VALUE = 'p@ss/wörd+with "quotes" & \\slashes?'


@pytest.mark.parametrize(
    "text",
    [
        VALUE,
        json.dumps({"password": VALUE}),
        json.dumps({"password": VALUE}, ensure_ascii=False),
        json.dumps({"password": VALUE}, ensure_ascii=False).replace("&", "\\u0026"),
        repr({"password": VALUE}),
        f"https://x:{quote(VALUE, safe='')}@git.example.com",
        f"https://x:{quote(VALUE)}@git.example.com",
        urlencode({"token": VALUE}),
        quote_plus(VALUE).lower() if quote_plus(VALUE).islower() else quote_plus(VALUE),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    ],
)
def test_every_encoding_of_a_secret_is_masked(text: str) -> None:
    masked = Mask.of([VALUE])(f"before {text} after")
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert masked.count("***") == 1
    assert not any(part in masked for part in ("wörd", "w\\u00f6rd", "slashes", "quotes"))


def test_json_as_kubectl_writes_it_is_masked() -> None:
    text = r'"password": "pa\u003css\u003e\u0026wo\"r\\d4711"'
    assert Mask.of(['pa<ss>&wo"r\\d4711'])(text) == '"password": "***"'


def test_a_percent_escape_in_lower_case_is_masked() -> None:
    assert Mask.of(["secret/value"])("secret%2fvalue") == "***"


def test_each_line_of_a_secret_is_masked() -> None:
    assert Mask.of(["first-line\nsecond-line"])("x first-line y second-line z") == "x *** y *** z"


@pytest.mark.parametrize("text", ["two  spaces", "a\ttab between", "ab\ncd\nef"])
def test_a_secret_told_in_one_line_is_masked(text: str) -> None:
    """As the messages of a cluster are: short lines alone aren't masked."""
    assert Mask.of([text])(f"it is {' '.join(text.split())}, it says") == "it is ***, it says"


def test_the_longest_secret_is_masked_first() -> None:
    assert Mask.of(["token", "token-and-more"])("token-and-more token") == "*** ***"


def test_text_without_secrets_stays() -> None:
    assert Mask.of([])("anything") == "anything"
    assert Mask.of(["x" * (SHORTEST - 1)])("xxx") == "xxx"


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=SHORTEST), st.text(), st.text())
def test_no_secret_survives_whatever_surrounds_it(secret: str, before: str, after: str) -> None:
    masked = Mask.of([secret])(before + secret + after)
    assert masked.count("***") >= 1
    assert secret not in masked


def test_secrets_that_overlap_are_masked_as_one() -> None:
    assert Mask.of(["abcdef", "efghij"])("x abcdefghij y") == "x *** y"
    assert Mask.of(["inner-part"])("x inner-part-of-more y") == "x ***-of-more y"
    assert Mask.of(["abab"])("x ababab y") == "x *** y"


@pytest.mark.slow
@given(st.lists(st.text("ab", min_size=SHORTEST, max_size=SHORTEST + 2), max_size=6), st.text("abc", min_size=8, max_size=40))
def test_every_character_of_every_secret_is_masked_and_no_other(values: list[str], text: str) -> None:
    covered = {
        at for each in values for start in range(len(text)) if text.startswith(each, start) for at in range(start, start + len(each))
    }
    shown = "".join(letter for at, letter in enumerate(text) if at not in covered)
    assert Mask.of(values)(text).replace("*", "") == shown.replace("*", "")


@pytest.mark.parametrize("mark", ["", "…", "...", "\ufffd"])
def test_a_texts_end_that_is_a_secrets_beginning_is_masked(mark: str) -> None:
    """The program that cut the text knew nothing of the secret."""
    mask = Mask.of(["hunter2-of-the-database", "hunter2", "x" * 3000])
    for length in range(secret_mask.BEGINNING, len("hunter2-of-the-database")):
        assert mask(f"it says {'hunter2-of-the-database'[:length]}{mark}") == f"it says ***{mark}"
    assert mask("x" * 2999 + mark) == "***" + mark


def test_a_short_end_and_what_stands_elsewhere_is_no_secrets_beginning() -> None:
    mask = Mask.of(["a-secret-of-many-words"])
    for text in ("it is a-secre", "a-secret-of is what it begins with", "a-secret-of-any"):
        assert mask(text) == text


@pytest.mark.slow
@given(st.text("ab", min_size=10, max_size=20), st.integers(8, 20), st.text("abc", max_size=12))
def test_no_cut_shows_a_secrets_beginning(secret: str, length: int, before: str) -> None:
    masked = Mask.of([secret])(before + secret[:length])
    assert masked.endswith("***")


# --- parts of a secret
SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.!$^~+"
SECRETS = st.text(SAFE, min_size=SHORTEST_PART, max_size=40)
FREE = st.text(st.characters(codec="utf-8", exclude_characters="*\r\n", exclude_categories=("C", "Z")), min_size=SHORTEST_PART)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


HOLDERS: dict[str, Callable[[str], str]] = {
    "a variable": lambda secret: f"MODE=blue\nexport DB_PASSWORD={secret}\nPORT=80\n",
    "a quoted variable": lambda secret: f"MODE='blue'\nDB_PASSWORD=\"{secret}\"\n",
    "a property": lambda secret: f"db.user = ann\ndb.password = {secret}\n",
    "YAML": lambda secret: f"db:\n  user: ann\n  password: '{secret}'  # of the shop\n",
    "an unquoted word of YAML": lambda secret: f"- password: {secret}\n  user: ann\n",
    "JSON": lambda secret: json.dumps({"db": {"user": "ann", "keys": [1, secret]}}, indent=1),
    "a URL's password": lambda secret: f"postgres://ann:{quote(secret, safe='')}@db:5432/shop",
    "a URL's token": lambda secret: f"https://{secret}@git.example.com/shop.git",
    "a URL's query": lambda secret: f"https://example.com/hook?a=b&sig={quote(secret, safe='')}&c=d",
    "a URL in a file": lambda secret: f"MODE=blue\nDATABASE_URL=mysql://ann:{quote(secret, safe='')}@db/shop?ssl=1\n",
    "a connection string": lambda secret: f"Server=db;User Id=ann;Password={secret};Pooling=true",
    "a DSN": lambda secret: f"host=db user=ann password={secret} dbname=shop",
    "a login": lambda secret: f"ann:{secret}",
    ".netrc": lambda secret: f"machine db login ann password {secret}\n",
    "XML": lambda secret: f"<settings><password>{secret}</password></settings>",
    "base64": encoded,
    "base64 of a login in JSON": lambda secret: json.dumps({"auths": {"r.io": {"auth": encoded(f"ann:{secret}")}}}),
    "base64 in a variable": lambda secret: f"KEY={encoded(secret)}\n",
    "a header": lambda secret: f"Authorization: Bearer {secret}",
}


@pytest.mark.slow
@pytest.mark.parametrize("holder", HOLDERS)
@given(secret=SECRETS, before=st.text(SAFE + " "), after=st.text(SAFE + " "))
def test_no_part_of_a_composite_secret_is_shown(holder: str, secret: str, before: str, after: str) -> None:
    value = HOLDERS[holder](secret)
    mask = Mask.of([value, *parts(value)])
    assert secret not in mask(f"{before} {secret} {after}")
    assert encoded(secret) not in mask(f"{before} {encoded(secret)} {after}")


@pytest.mark.slow
@pytest.mark.parametrize("delimiter", ["=", ":", ": ", " = "])
@given(secret=FREE, key=st.text("abcdefXYZ_", min_size=1))
@example(secret="0000:0=", key="a")  # a delimiter at its end, too
def test_a_lines_value_behind_its_delimiter_is_masked(delimiter: str, secret: str, key: str) -> None:
    shown = Mask.of(parts(f"one\n{key}{delimiter}{secret}\ntwo"))(f"it read {secret.strip(chr(34) + chr(39) + '`,; =:')}")
    rest = shown.removeprefix("it read ").replace("***", "")
    assert len(rest) < SHORTEST_PART or not secret.strip("\"'`,; =:").endswith(rest)


def test_short_parts_and_the_value_itself_are_no_parts() -> None:
    assert parts("MODE=blue\nPORT=80\n") == frozenset()
    assert parts("hunter2-of-the-database") == frozenset()
    assert parts("") == frozenset()


def test_parts_of_a_secret_value() -> None:
    assert parts("postgres://ann:p%40ss-word@db:5432/shop?sslkey=abc%2Fdef") >= {
        "ann:p%40ss-word",
        "p%40ss-word",
        "p@ss-word",
        "abc%2Fdef",
        "abc/def",
    }
    assert "postgres" not in parts("postgres://postgres:hunter2@db/shop"), "a user isn't secret, but for a token"
    assert "/services/T00/B00/xyzxyz" in parts("https://hooks.example.com/services/T00/B00/xyzxyz")
    assert parts('{"a": [123456789, true, "inner=hunter2"]}') >= {"123456789", "inner=hunter2", "hunter2"}


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a", "=", ":", "a=", "a:", '="', "='", "a://", "a://b@", ">", "<a>", "password ", "[", '{"a":', "k=v&"])
def test_a_large_value_of_any_shape_has_parts_that_are_not_much_more_than_itself(text: str) -> None:
    value = text * (100_000 // len(text))
    assert sum(map(len, parts(value))) < 100 * len(value)


def test_many_values_are_opened_layer_by_layer_up_to_a_length_and_then_one_layer_deep() -> None:
    opening, value = Opening(left=40), "A=http://ann:hunter2@db"
    assert "hunter2" in opening.parts(value)
    assert "ann:hunter2" in opening.parts(value)
    assert opening.left < 0
    assert "http://ann:hunter2@db" in opening.parts(value)
    hostile = "a=b" * 100_000
    assert sum(map(len, opening.parts(hostile))) < 3 * len(hostile)


def test_a_value_that_no_url_holds_is_not_written_as_one() -> None:
    short, long = ("a/b&c" * count for count in (10, 2_000))
    assert quote(short, safe="") in set(secret_mask.spellings(short))
    assert quote(long, safe="") not in set(secret_mask.spellings(long))
