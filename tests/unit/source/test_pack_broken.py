"""Packs that git wrote, broken in every place: what is read hashes right, everything else is named."""

from __future__ import annotations

import subprocess
from hashlib import sha1
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.errors import SourceRefused
from handler.source.git_objects import Objects
from handler.source.host_limits import HostLimits
from handler.source.pack import PackBroken, read_pack
from infra.gitwork import run_git

LIMITS = HostLimits(objects=200, object=1 << 20, inflated=4 << 20)
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
        return read_pack(data, LIMITS)
    except (PackBroken, SourceRefused):
        return {}


def test_the_whole_pack_is_read(real: bytes) -> None:
    found = read_pack(real, LIMITS)
    assert sorted(KINDS[kind] for kind, _ in found.values()) == [*[b"blob"] * 3, *[b"commit"] * 3, b"tag", *[b"tree"] * 3]
    assert sound(found)


def test_a_pack_cut_anywhere_is_named_broken_whatever_its_checksum(real: bytes) -> None:
    for end in range(len(real)):
        for cut in (real[:end], sealed(real[:end])):
            if end < len(real) - 20 or cut == real[:end]:
                with pytest.raises((PackBroken, SourceRefused)):
                    read_pack(cut, LIMITS)


@pytest.mark.slow
def test_a_pack_with_one_byte_turned_anywhere_is_named_or_hashes_right(real: bytes) -> None:
    for place in range(len(real) - 20):
        for turned in (0x01, 0x80, 0xFF):
            altered = bytearray(real[:-20])
            altered[place] ^= turned
            assert sound(read(sealed(bytes(altered))))


EDIT = st.tuples(st.sampled_from(["flip", "cut", "double", "insert"]), st.integers(0), st.binary(min_size=1, max_size=8))
EDITS = st.lists(EDIT, min_size=1, max_size=5)


@pytest.mark.slow
@given(EDITS)
def test_a_pack_altered_at_random_is_named_or_hashes_right(real: bytes, edits: list[tuple[str, int, bytes]]) -> None:
    body = bytearray(real[:-20])
    for edit, number, data in edits:
        place = number % len(body)
        if edit == "flip":
            body[place] ^= data[0] or 1
        elif edit == "cut":
            del body[place : place + len(data)]
        elif edit == "double":
            body[place:place] = body[place : place + 20 * len(data)]
        else:
            body[place:place] = data
    assert sound(read(sealed(bytes(body))))
