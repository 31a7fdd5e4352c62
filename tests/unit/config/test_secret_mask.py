"""However a secret is written, it doesn't come through."""

from __future__ import annotations

import base64
import json
import threading
import tracemalloc
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.config import secret_mask
from handler.config.secret_mask import SHORTEST, Mask, learn

JWT, HOUR = 600.0, 3600.0
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
        "Authorization: Basic " + base64.b64encode(f"oauth2:{VALUE}".encode()).decode(),
    ],
)
def test_every_encoding_of_a_secret_is_masked(text: str) -> None:
    masked = Mask.of([VALUE], [("oauth2", VALUE)])(f"before {text} after")
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
    mask = Mask.of(["hunter2-of-the-database", "hunter2", "x" * 3000], [("oauth2", "hunter2-of-the-database")])
    for length in range(secret_mask.BEGINNING, len("hunter2-of-the-database")):
        assert mask(f"it says {'hunter2-of-the-database'[:length]}{mark}") == f"it says ***{mark}"
    assert mask("x" * 2999 + mark) == "***" + mark
    basic = base64.b64encode(b"oauth2:hunter2-of-the-database").decode()
    assert mask(f"Basic {basic[:20]}{mark}") == f"Basic ***{mark}"


def test_a_short_end_and_what_stands_elsewhere_is_no_secrets_beginning() -> None:
    mask = Mask.of(["a-secret-of-many-words"])
    for text in ("it is a-secre", "a-secret-of is what it begins with", "a-secret-of-any"):
        assert mask(text) == text


@pytest.mark.slow
@given(st.text("ab", min_size=10, max_size=20), st.integers(8, 20), st.text("abc", max_size=12))
def test_no_cut_shows_a_secrets_beginning(secret: str, length: int, before: str) -> None:
    masked = Mask.of([secret])(before + secret[:length])
    assert masked.endswith("***")


# --- what is learned while the process runs
@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of what is learned; nothing of other tests is known."""
    now = [0.0]
    monkeypatch.setattr(secret_mask, "_LEARNED", secret_mask._Learned(lambda: now[0]))
    return now


def mint(number: int) -> tuple[str, str]:
    """Learn a JWT and a token as a GitHub App makes them."""
    bearer = f"eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjE3{number:08}.{'s' * 340}{number:08}"
    token = f"ghs_{number:036}"
    learn(bearer, seconds=JWT)
    learn(token, f"x-access-token:{token}", seconds=HOUR)
    return bearer, token


def written(token: str) -> tuple[str, ...]:
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return token, base64.b64encode(token.encode()).decode(), f"Basic {basic}", f"https://x-access-token:{token}@github.com"


@pytest.mark.slow
def test_a_minted_token_is_masked_until_it_expires_and_then_forgotten(clock: list[float]) -> None:
    mask, made, sizes = Mask.of(["another-secret"]), [], []
    for number in range(500):
        made.append(mint(number))
        sizes.append(secret_mask._LEARNED.spellings.count)
        for _, token in made[-60:]:
            assert all(token not in mask(text) and mask(text).count("***") == 1 for text in written(token))
        for bearer, _ in made[-10:]:
            assert mask(f"Authorization: Bearer {bearer} {base64.b64encode(bearer.encode()).decode()}") == "Authorization: Bearer *** ***"
        clock[0] += 60
    assert max(sizes) == sizes[60] == sizes[-1]
    assert mask(made[0][1]) == made[0][1]
    assert mask("another-secret and a plain word") == "*** and a plain word"


@pytest.mark.slow
def test_all_tokens_of_one_hour_are_masked(clock: list[float]) -> None:
    made = [mint(number) for number in range(500)]
    text = "\n".join(text for _, token in made for text in written(token))
    masked = Mask()(text)
    assert not any(part in masked for _, token in made for part in (token, *written(token)))
    assert len(masked.splitlines()) == 2000


@pytest.mark.slow
def test_minted_tokens_do_not_grow_the_process(clock: list[float]) -> None:
    """A pattern for each token, kept by `re`, was more than a MiB each."""
    mask = Mask()

    def work(numbers: range) -> int:
        for number in numbers:
            mint(number)
            mask("a line of a log")
            clock[0] += 60
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before, after = work(range(100)), work(range(100, 160))
    finally:
        tracemalloc.stop()
    assert after - before < 10_000_000  # sixty of them


def test_a_flood_of_tokens_drops_what_ends_first(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_mask, "LEARNED", 3)
    learn("lives-long", seconds=9)
    learn("lives-briefly", seconds=1)
    learn("third", seconds=5)
    learn("fourth", seconds=5)
    assert Mask()("lives-long lives-briefly third fourth") == "*** lives-briefly *** ***"


def test_a_token_learned_twice_is_masked_until_the_later_expiry(clock: list[float]) -> None:
    learn("the-token", seconds=100)
    learn("the-token", seconds=1)
    clock[0] = 99
    learn("other", seconds=1)
    assert Mask()("the-token") == "***"


def test_a_configured_secret_inside_of_a_learned_one_leaves_no_rest(clock: list[float]) -> None:
    learn("ghs_part-and-rest", "left-ghs_pa", seconds=HOUR)
    assert Mask.of(["ghs_part"])("x left-ghs_part-and-rest ghs_part y") == "x *** *** y"


@pytest.mark.slow
def test_threads_mask_what_they_have_learned_at_once(clock: list[float]) -> None:
    shown: list[str] = []

    def work(first: int) -> None:
        for number in range(first, first + 20):
            _, token = mint(number)
            shown.extend(text for text in written(token) if token in Mask()(text))

    threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shown == []


def test_a_value_that_no_url_holds_is_not_written_as_one() -> None:
    short, long = ("a/b&c" * count for count in (10, 2_000))
    assert quote(short, safe="") in set(secret_mask.spellings(short))
    assert quote(long, safe="") not in set(secret_mask.spellings(long))
