"""Of a secret value that holds several things, none that stands behind a delimiter survives alone in a text."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.config.secret_mask import SHORTEST_PART, Mask, parts

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


@pytest.mark.parametrize("holder", HOLDERS)
@given(secret=SECRETS, before=st.text(SAFE + " "), after=st.text(SAFE + " "))
def test_no_part_survives_alone(holder: str, secret: str, before: str, after: str) -> None:
    value = HOLDERS[holder](secret)
    mask = Mask.of([value, *parts(value)])
    assert secret not in mask(f"{before} {secret} {after}")
    assert encoded(secret) not in mask(f"{before} {encoded(secret)} {after}")


@pytest.mark.parametrize("delimiter", ["=", ":", ": ", " = "])
@given(secret=FREE, key=st.text("abcdefXYZ_", min_size=1))
def test_whatever_a_line_holds_behind_its_delimiter_is_masked(delimiter: str, secret: str, key: str) -> None:
    shown = Mask.of(parts(f"one\n{key}{delimiter}{secret}\ntwo"))(f"it read {secret.strip(chr(34) + chr(39) + '`,; =:')}")
    rest = shown.removeprefix("it read ").replace("***", "")
    assert len(rest) < SHORTEST_PART or not secret.strip("\"'`,; =:").endswith(rest)


def test_short_parts_and_the_value_itself_are_left_out() -> None:
    assert parts("MODE=blue\nPORT=80\n") == frozenset()
    assert parts("hunter2-of-the-database") == frozenset()
    assert parts("") == frozenset()


def test_what_a_value_is_made_of() -> None:
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


@pytest.mark.parametrize("text", ["a", "=", ":", "a=", "a:", '="', "='", "a://", "a://b@", ">", "<a>", "password ", "[", '{"a":', "k=v&"])
def test_a_large_value_of_any_shape_has_parts_that_are_not_much_more_than_itself(text: str) -> None:
    value = text * (100_000 // len(text))
    assert sum(map(len, parts(value))) < 100 * len(value)
