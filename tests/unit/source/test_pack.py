"""Packs: what git writes is read whole, what any other program writes, or what is broken in any place, ends in a named error."""

from __future__ import annotations

import io
import itertools
import subprocess
from dataclasses import replace
from hashlib import sha1
from pathlib import Path

import pytest
from dulwich.object_format import SHA1
from dulwich.objects import Blob
from dulwich.pack import create_delta, write_pack_data, write_pack_object
from hypothesis import given
from hypothesis import strategies as st

from handler.model.errors import SourceRefused
from handler.source.git_objects import BLOB, Objects
from handler.source.host_limits import HostLimits
from handler.source.pack import PackBroken, read_pack
from infra.gitwork import run_git

pytestmark = pytest.mark.slow

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


@given(st.permutations(range(6)))
def test_objects_come_out_the_same_in_whatever_order_they_stand(order: list[int]) -> None:
    contents = [TEXT + b"line\n" * number for number in range(6)]
    chain = [(3, contents[0])] + [(7, (bytes.fromhex(oid(base)), delta(base, made))) for base, made in itertools.pairwise(contents)]
    assert read_pack(written(*(chain[place] for place in order)), LIMITS) == {oid(made): (BLOB, made) for made in contents}


def test_a_chain_of_ten_thousand_deltas_is_followed_in_either_direction() -> None:
    contents = [b"%d" % number for number in range(10_001)]
    chain = [(3, contents[0])] + [(7, (bytes.fromhex(oid(base)), delta(base, made))) for base, made in itertools.pairwise(contents)]
    for entries in (chain, chain[::-1]):
        assert len(read_pack(written(*entries), replace(LIMITS, objects=20_000))) == 10_001


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


REAL_LIMITS = HostLimits(objects=200, object=1 << 20, inflated=4 << 20)
KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A pack of commits, trees, blobs, deltas by offset and an annotated tag."""
    work = tmp_path_factory.mktemp("work")
    run_git(work, "init", "-q", "--initial-branch=main")
    for number in range(3):
        lines = [f"key-{each}: {'changed' if each == number else 'value'}\n" for each in range(40)]
        (work / "app.yaml").write_text("".join(lines))
        run_git(work, "add", "-A")
        run_git(work, "commit", "-q", "-m", f"Version {number}")
    run_git(work, "tag", "-a", "v1", "-m", "one")
    return packed(work)


def packed(work: Path) -> bytes:
    flags = ("--revs", "--stdout", "--delta-base-offset", "--all", "--quiet")
    made = subprocess.run(["git", "pack-objects", *flags], cwd=work, input=b"", check=True, capture_output=True)
    return made.stdout


def sound(found: Objects) -> bool:
    return all(sha1(b"%s %d\0%s" % (KINDS[kind], len(c), c), usedforsecurity=False).hexdigest() == oid for oid, (kind, c) in found.items())


def sealed(body: bytes) -> bytes:
    return body + sha1(body, usedforsecurity=False).digest()


def read(data: bytes) -> Objects:
    """Read a pack that may be broken: nothing, if it is named so; any other error is a failure."""
    try:
        return read_pack(data, REAL_LIMITS)
    except (PackBroken, SourceRefused):
        return {}


def test_the_whole_pack_is_read(real: bytes) -> None:
    found = read_pack(real, REAL_LIMITS)
    assert sorted(KINDS[kind] for kind, _ in found.values()) == [*[b"blob"] * 3, *[b"commit"] * 3, b"tag", *[b"tree"] * 3]
    assert sound(found)


def test_a_pack_cut_anywhere_is_named_broken_whatever_its_checksum(real: bytes) -> None:
    for end in range(len(real)):
        for cut in (real[:end], sealed(real[:end])):
            if end < len(real) - 20 or cut == real[:end]:
                with pytest.raises((PackBroken, SourceRefused)):
                    read_pack(cut, REAL_LIMITS)


def test_a_pack_with_one_byte_turned_anywhere_is_named_or_hashes_right(real: bytes) -> None:
    for place in range(len(real) - 20):
        for turned in (0x01, 0x80, 0xFF):
            altered = bytearray(real[:-20])
            altered[place] ^= turned
            assert sound(read(sealed(bytes(altered))))
