"""What was read from a text: the same value again, and the same text for it, while there is room."""

from __future__ import annotations

import pytest

from handler.state.decode_cache import DecodeCache


def test_a_text_is_read_once_and_its_very_value_is_written_as_that_text() -> None:
    kept, reads = DecodeCache(40, 1), list[int]()

    def load() -> tuple[list[str], int]:
        reads.append(1)
        return ["x"], 4

    value = kept.read(("steps", "[1]", None), load)
    assert kept.read(("steps", "[1]", None), load) is value
    assert len(reads) == 1
    assert kept.text("steps", value) == ("steps", "[1]", None)
    assert kept.text("steps", ["x"]) is kept.text("history", value) is None


def test_the_decode_cache_evicts_the_least_recently_used_and_keeps_nothing_too_large() -> None:
    kept = DecodeCache(40, 1)
    texts = [("steps", str(number), None) for number in range(4)]
    values = [kept.read(text, lambda: (["x"], 4)) for text in texts[:2]]
    kept.read(texts[0], lambda: (["never"], 4))
    values.append(kept.read(texts[2], lambda: (["x"], 4)))
    large = kept.read(texts[3], lambda: (["x"], 11))
    assert [kept.text("steps", value) for value in (*values, large)] == [texts[0], None, texts[2], None]


def test_the_decode_cache_keeps_nothing_that_cannot_be_read() -> None:
    kept = DecodeCache(least=1)

    def load() -> tuple[list[str], int]:
        raise ValueError("no JSON")

    for _ in range(2):
        with pytest.raises(ValueError, match="no JSON"):
            kept.read(("steps", "{", None), load)
    assert kept.read(("steps", "{", None), lambda: (["x"], 1)) == ["x"]


def test_the_decode_cache_keeps_a_short_value_that_the_next_write_is_made_of() -> None:
    kept, text = DecodeCache(), ("rollout", None, "gzip")
    assert kept.text("rollout", kept.read(text, lambda: (["x"], 5))) is None
    value = kept.read(text, lambda: (["x"], 5), keep=True)
    assert kept.text("rollout", value) == text
