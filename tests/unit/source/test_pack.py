"""Packs: what git writes is read whole, what any other program writes ends in a named error."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from hashlib import sha1

import pytest
from dulwich.object_format import SHA1
from dulwich.objects import Blob
from dulwich.pack import create_delta, write_pack_data, write_pack_object
from hypothesis import given
from hypothesis import strategies as st

from handler.model.errors import SourceRefused
from handler.source.git_objects import BLOB
from handler.source.host_limits import HostLimits
from handler.source.pack import PackBroken, read_pack

LIMITS = HostLimits(objects=100, object=100_000, inflated=400_000)
TEXT = b"kind: ConfigMap\n" * 50
CHANGED = TEXT + b"one line more\n"


def written(*entries: tuple[int, bytes | tuple[bytes | int, bytes]]) -> bytes:
    """Write a pack; a delta's content is its base and the delta."""
    file = io.BytesIO()
    file.write(b"PACK" + (2).to_bytes(4, "big") + len(entries).to_bytes(4, "big"))
    for kind, content in entries:
        value = [content] if isinstance(content, bytes) else (content[0], [content[1]])
        write_pack_object(file.write, kind, value, object_format=SHA1)
    return file.getvalue() + sha1(file.getvalue()).digest()


def oid(content: bytes) -> str:
    return Blob.from_string(content).id.decode()


def delta(base: bytes, target: bytes) -> bytes:
    return b"".join(create_delta(base, target))


def test_objects_and_deltas_come_out_under_their_own_ids() -> None:
    pack = written((3, TEXT), (7, (bytes.fromhex(oid(TEXT)), delta(TEXT, CHANGED))))
    assert read_pack(pack, LIMITS) == {oid(TEXT): (BLOB, TEXT), oid(CHANGED): (BLOB, CHANGED)}


def test_a_delta_may_stand_before_its_base_and_chains_are_followed() -> None:
    longer = CHANGED + b"and another\n"
    pack = written(
        (7, (bytes.fromhex(oid(CHANGED)), delta(CHANGED, longer))), (7, (bytes.fromhex(oid(TEXT)), delta(TEXT, CHANGED))), (3, TEXT)
    )
    assert {found for found, _ in read_pack(pack, LIMITS).items()} == {oid(TEXT), oid(CHANGED), oid(longer)}


@given(st.permutations(range(6)))
def test_objects_come_out_the_same_in_whatever_order_they_stand(order: list[int]) -> None:
    contents = [TEXT + b"line\n" * number for number in range(6)]
    chain = [(3, contents[0])] + [(7, (bytes.fromhex(oid(base)), delta(base, made))) for base, made in itertools.pairwise(contents)]
    assert read_pack(written(*(chain[place] for place in order)), LIMITS) == {oid(made): (BLOB, made) for made in contents}


@pytest.mark.slow
def test_a_chain_of_ten_thousand_deltas_is_followed_in_either_direction() -> None:
    contents = [b"%d" % number for number in range(10_001)]
    chain = [(3, contents[0])] + [(7, (bytes.fromhex(oid(base)), delta(base, made))) for base, made in itertools.pairwise(contents)]
    for entries in (chain, chain[::-1]):
        assert len(read_pack(written(*entries), replace(LIMITS, objects=20_000))) == 10_001


@pytest.mark.slow
def test_many_deltas_on_one_base_that_stands_last_are_each_applied_once() -> None:
    base = bytes(1 << 20)
    made = [b"%d" % number for number in range(5000)]
    entries = [(7, (bytes.fromhex(oid(base)), b"\x80\x80\x40" + bytes([len(each), len(each)]) + each)) for each in made]
    found = read_pack(written(*entries, (3, base)), HostLimits())
    assert {oid(each) for each in made} < found.keys()


@pytest.mark.parametrize(
    "entries",
    [
        [(7, (b"\1" * 20, delta(TEXT, CHANGED))), (7, (b"\2" * 20, delta(CHANGED, TEXT)))],
        [(7, (bytes.fromhex(oid(CHANGED)), delta(CHANGED, TEXT))), (7, (bytes.fromhex(oid(TEXT)), delta(TEXT, CHANGED)))],
        [(7, (bytes.fromhex(oid(TEXT)), delta(TEXT, TEXT)))],
        [(3, TEXT), (6, (1, delta(TEXT, CHANGED)))],
    ],
    ids=["on nothing", "on each other", "on itself", "into the middle of another"],
)
def test_deltas_without_a_base_are_named_broken(entries: list[tuple[int, bytes | tuple[bytes | int, bytes]]]) -> None:
    with pytest.raises(PackBroken, match="base is missing"):
        read_pack(written(*entries), LIMITS)


def test_a_delta_by_offset_is_resolved() -> None:
    first = written((3, TEXT))
    distance = len(first) - 12 - 20
    pack = written((3, TEXT), (6, (distance, delta(TEXT, CHANGED))))
    assert read_pack(pack, LIMITS)[oid(CHANGED)] == (BLOB, CHANGED)


@pytest.mark.parametrize(
    "limits", [replace(LIMITS, objects=1), replace(LIMITS, object=len(CHANGED) - 1), replace(LIMITS, inflated=len(TEXT) + len(CHANGED))]
)
def test_each_limit_counts_what_a_delta_makes(limits: HostLimits) -> None:
    with pytest.raises(SourceRefused):
        read_pack(written((3, TEXT), (7, (bytes.fromhex(oid(TEXT)), delta(TEXT, CHANGED)))), limits)


def test_a_pack_without_objects_is_empty() -> None:
    file = io.BytesIO()
    write_pack_data(file.write, iter(()), num_records=0, object_format=SHA1)
    assert read_pack(file.getvalue(), LIMITS) == {}


GOOD = written((3, TEXT), (3, b"x"), (7, (bytes.fromhex(oid(TEXT)), delta(TEXT, CHANGED))))


@given(st.integers(0, len(GOOD) - 21), st.binary(min_size=1, max_size=12))
def test_an_altered_pack_with_a_right_checksum_is_read_or_named_broken(place: int, altered: bytes) -> None:
    body = GOOD[:place] + altered + GOOD[place + len(altered) : -20]
    try:
        found = read_pack(body + sha1(body).digest(), LIMITS)
    except (PackBroken, SourceRefused):
        return
    assert all(
        sha1(b"%s %d\0%s" % ([b"", b"commit", b"tree", b"blob", b"tag"][kind], len(c), c)).hexdigest() == name
        for name, (kind, c) in found.items()
    )


@given(st.binary(max_size=40))
def test_any_delta_makes_an_object_or_is_named_broken(made_up: bytes) -> None:
    try:
        found = read_pack(written((3, TEXT), (7, (bytes.fromhex(oid(TEXT)), made_up))), LIMITS)
    except (PackBroken, SourceRefused):
        return
    assert all(oid(content) == name for name, (_, content) in found.items())


@given(st.binary(max_size=200))
def test_any_bytes_are_named_broken(data: bytes) -> None:
    with pytest.raises(PackBroken):
        read_pack(data, LIMITS)
