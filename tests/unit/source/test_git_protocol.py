"""Answers and trees made of everything that may stand in one: each is read, or refused by an error that the room expects."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest
from dulwich.errors import GitProtocolError
from dulwich.protocol import pkt_line
from hypothesis import given
from hypothesis import strategies as st

from handler.source.git_protocol import HostRefused, read_fetched

TOKENS = (b"packfile\n", b"NAK\n", b"shallow " + b"1" * 40, b"shallow-info\n", b"\x01PACK", b"\x02on", b"\x03no", b"ERR no\n", b"\x09", b"")
SPECIAL = st.sampled_from([b"0000", b"0001", b"0002", b"0003", b"0004", b"0005\x01", b"ffff", b"-001", b"zzzz"])
ANSWERS = st.lists(st.one_of(st.sampled_from(TOKENS).map(pkt_line), SPECIAL, st.binary(max_size=6)), max_size=8).map(b"".join)
EXPECTED = (GitProtocolError, HostRefused, ValueError, IndexError)  # the transport reports all of them in our words


@pytest.mark.slow
@given(ANSWERS, st.sampled_from([0, 2]))
def test_any_answer_to_a_fetch_is_read_or_refused(answer: bytes, version: int) -> None:
    with suppress(*EXPECTED):
        assert len(read_fetched(io.BytesIO(answer), version)) <= len(answer)
