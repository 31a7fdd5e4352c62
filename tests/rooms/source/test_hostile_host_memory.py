"""All lies answered to one process: its memory stays below what the limits add up to, and no thread or connection is left."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any

from dulwich.protocol import pkt_line

from handler.source.host_limits import HostLimits
from tests.rooms.source.hostile_answers import LIES, PACKFILE, PARTS, SHA, grown, repeated
from tests.rooms.source.hostile_host import FLUSH, Chunks, Hostile, entry, fetched, pack, small_commit
from tests.rooms.source.open_repository import PATIENT

ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20
SIZES = {"refs": 8 * MIB, "pack": 16 * MIB, "objects": 20_000, "object": 8 * MIB, "inflated": 32 * MIB, "entries": 20_000}
LARGE = replace(PATIENT, **SIZES)
BOUND = LARGE.pack + LARGE.inflated + 16 * MIB
"""What one fetch may hold: the pack, its contents, and what Python adds to 20,000 objects and names."""


@dataclass
class Deceived:
    """The process."""

    process: subprocess.Popen[str]

    def told(self, url: str, sha: str, limits: HostLimits) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"url": url, "sha": sha, "limits": asdict(limits)}) + "\n")
        self.process.stdin.flush()
        seen: dict[str, Any] = json.loads(self.process.stdout.readline())
        return seen


@contextmanager
def deceived() -> Iterator[Deceived]:
    command = [sys.executable, "-m", "tests.rooms.source.fetching_process"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Deceived(process)
        assert process.stdin
        process.stdin.close()


def endless(lines: Callable[[int], bytes], first: bytes = b"") -> Chunks:
    return chain([first], (b"".join(map(lines, range(start, start + 1000))) for start in count(0, 1000)))


def hosted(*more: bytes, **lies: Any) -> Hostile:
    """Serve the small commit, with more objects, but for what is lied about."""
    honest: dict[str, Any] = {"pack": lambda: fetched(pack(*PARTS, *more)), "refs": [pkt_line(SHA.encode() + b" refs/heads/main\n"), FLUSH]}
    return Hostile(**honest | lies)


@cache
def wide() -> tuple[str, list[bytes]]:
    """Return the id and the pack entries of a commit with very many names."""
    return small_commit(names=150_000)


LARGE_LIES: dict[str, tuple[Callable[[], Hostile], str]] = {
    "progress": (lambda: hosted(pack=repeated(pkt_line(b"\x02" + b"working " * 1000), PACKFILE)), "source-refused"),
    "keep-alives": (lambda: hosted(pack=repeated(b"0005\x01", PACKFILE)), "source-refused"),
    "pack": (lambda: hosted(pack=repeated(pkt_line(b"\x01" + b"PACK" * 4000), PACKFILE)), "source-refused"),
    "refs": (lambda: hosted(refs=endless(lambda n: pkt_line(b"1" * 40 + b" refs/heads/main-%d\n" % n))), "source-refused"),
    "refs in front": (lambda: hosted(offer=endless(lambda n: pkt_line(b"1" * 40 + b" refs/heads/x-%d\n" % n))), "source-refused"),
    "capabilities": (lambda: hosted(offer=endless(lambda n: pkt_line(b"x%d" % n), pkt_line(b"version 2\n"))), "git-unavailable"),
    "contents over the limit": (lambda: hosted(*[entry(3, bytes(8 * MIB))] * 5), "source-refused"),
    "contents below it": (lambda: hosted(*[entry(3, bytes(8 * MIB - n)) for n in range(3)]), "believed"),
    "objects below the limit": (lambda: hosted(*[entry(3, b"%d" % n) for n in range(19_000)]), "believed"),
    "deltas that wait": (lambda: hosted(*[entry(7, grown(4 * MIB), base=b"\1" * 20)] * 9), "source-refused"),
    "names": (lambda: hosted(pack=lambda: fetched(pack(*wide()[1]))), "source-refused"),
    "bombs": (lambda: hosted(entry(3, bytes(64 * MIB), size=10)), "git-unavailable"),
}


def test_memory_stays_flat_and_nothing_is_left_open() -> None:
    with deceived() as process:
        with hosted() as host:
            first = process.told(host.url, SHA, LARGE)
        for name, lie in LIES.items():
            with lie.host() as host:
                assert process.told(host.url, SHA, lie.limits)["ended"] == lie.error.code, name
        for name, (made, code) in LARGE_LIES.items():
            with made() as host:
                last = process.told(host.url, wide()[0] if name == "names" else SHA, LARGE)
            assert last["ended"] == code, name
            assert last["peak"] < first["peak"] + BOUND, name
    assert (last["threads"], last["files"]) == (first["threads"], first["files"])
