"""Git's smart protocol, version 2 and 0 (git: gitprotocol-v2(5), gitprotocol-pack(5)). Bytes in, values out; no I/O.

dulwich frames and parses. By hand: one ref of a long list that is never kept, refusal of what wasn't asked for (pack URIs are other
addresses), and the host's ERR.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from dulwich.client import build_fetch_request_v2, build_ls_refs_request_v2, read_pkt_refs_v1, read_pkt_refs_v2
from dulwich.errors import GitProtocolError
from dulwich.objects import ObjectID
from dulwich.protocol import Protocol as Framing
from dulwich.protocol import pkt_line
from dulwich.refs import Ref

from handler.model.refs import Head

ADVERTISEMENT = "application/x-git-upload-pack-advertisement"
RESULT = "application/x-git-upload-pack-result"

_CAPABILITIES = 1000
_DELIMITER = b"0001"
_FLUSH = b"0000"
_V0_WANTED = (b"multi_ack_detailed", b"side-band-64k", b"ofs-delta", b"no-progress")


_GONE = (b"not our ref", b"unadvertised object", b"not a valid object", b"no such object", b"missing")


class HostRefused(Exception):
    """The host said ERR. Its words aren't kept: it knows our credentials. `gone`: it hasn't what was asked for, or doesn't serve it."""

    def __init__(self, said: bytes) -> None:
        super().__init__()
        self.gone = any(words in said for words in _GONE)


@dataclass(frozen=True, slots=True)
class Advertisement:
    """What a host offers. `head`: the wanted ref, by version 0 only."""

    version: int
    capabilities: frozenset[bytes]
    head: Head | None = None

    @property
    def filters(self) -> bool:
        """Say whether blobs can be left out and fetched later; only version 2 lets any object be asked for."""
        return self.version == 2 and b"filter" in self._fetch_features()

    @property
    def shallow(self) -> bool:
        """Say whether a commit can be fetched without its history."""
        return b"shallow" in (self._fetch_features() if self.version == 2 else self.capabilities)

    @property
    def object_format(self) -> str:
        """`sha1` or `sha256`."""
        return next((cap[14:].decode(errors="replace") for cap in self.capabilities if cap.startswith(b"object-format=")), "sha1")

    def _fetch_features(self) -> list[bytes]:
        return next((cap[6:].split() for cap in self.capabilities if cap.startswith(b"fetch=")), [])


class WantedRef(Protocol):
    """Which ref is looked for, in a list that is only walked. `name`: the best so far, a full ref name; `prefix`: of all that may be.

    `commit`: the one that it must name, in hex; empty: any.
    """

    name: str
    prefix: str
    commit: bytes

    def better(self, name: bytes) -> bool:
        """Look at a full ref name; say whether it is the best so far."""


class ExactRef:
    """One ref by its full name."""

    commit = b""

    def __init__(self, ref: str) -> None:
        self.name = ""
        self.prefix = ref

    def better(self, name: bytes) -> bool:
        """Say whether this is the one."""
        if self.name or name != self.prefix.encode():
            return False
        self.name = self.prefix
        return True


def read_advertisement(stream: BinaryIO, wanted: WantedRef | None) -> Advertisement:
    """Read the answer to `info/refs`."""
    lines = _protocol(stream)
    first = lines.read_pkt_line()
    if first is not None and first.startswith(b"# service="):
        lines.read_pkt_line()
        first = lines.read_pkt_line()
    if first is not None and first.strip() == b"version 2":
        return Advertisement(2, frozenset(_few(cap.strip() for cap in _spoken(lines))))
    if first is not None and first.strip() != b"version 1":
        lines.unread_pkt_line(first)
    refs, capabilities = read_pkt_refs_v1(_wanted_lines(_spoken(lines), wanted, position=1))
    return Advertisement(0, frozenset(cap.strip() for cap in capabilities), _found(refs, {}, wanted))


def _few(capabilities: Iterator[bytes]) -> Iterator[bytes]:
    """Yield capabilities up to a bound; git itself offers ten."""
    for number, capability in enumerate(capabilities):
        if number == _CAPABILITIES:
            raise GitProtocolError("too many capabilities")
        yield capability


def ls_refs(offer: Advertisement, wanted: WantedRef) -> bytes:
    """Return the body that asks for all refs that begin as what is wanted, by version 2."""
    command, arguments = build_ls_refs_request_v2(set(offer.capabilities), None, [wanted.prefix.encode()])
    return b"".join(map(pkt_line, command)) + _DELIMITER + b"".join(map(pkt_line, arguments)) + _FLUSH


def read_refs(stream: BinaryIO, wanted: WantedRef) -> Head | None:
    """Read the answer to `ls_refs`: the ref that is wanted, peeled, or nothing."""
    refs, _, peeled = read_pkt_refs_v2(_wanted_lines(_spoken(_protocol(stream)), wanted, position=0))
    return _found({name: oid for name, oid in refs.items() if oid}, peeled, wanted)


BLOBS, TREES = "blob:none", "tree:0"
"""Filters: without blobs, and without trees, too. https://git-scm.com/docs/git-rev-list#Documentation/git-rev-list.txt---filterltfilter-specgt"""


def fetch(offer: Advertisement, wants: Collection[str], *, depth: int = 0, leave: str = "", have: str = "") -> bytes:
    """Return the body that asks for objects. `leave`: what is left out (`offer.filters`).

    `depth`: of the history of commits, 0: all of it, but for `have` and what that leads to.
    """
    if offer.version == 2:
        return _fetch_v2(wants, depth, leave, have)
    chosen = b" ".join(cap for cap in _V0_WANTED if cap in offer.capabilities)
    first, *others = [b"want " + want.encode() for want in wants]
    lines = [first + b" " + chosen, *others, *([b"deepen %d" % depth] if depth else [])]
    known = pkt_line(f"have {have}\n".encode()) if have else b""
    return b"".join(pkt_line(line + b"\n") for line in lines) + _FLUSH + known + pkt_line(b"done\n")


def _fetch_v2(wants: Collection[str], depth: int, leave: str, have: str) -> bytes:
    arguments = [b"ofs-delta", b"no-progress", *(b"want " + want.encode() for want in wants)]
    arguments += [b"deepen %d" % depth] if depth else []
    arguments += [f"filter {leave}".encode()] if leave else []
    arguments += [f"have {have}".encode()] if have else []
    command = b"".join(map(pkt_line, build_fetch_request_v2(None)))
    return command + _DELIMITER + b"".join(pkt_line(line + b"\n") for line in [*arguments, b"done"]) + _FLUSH


def read_fetched(stream: BinaryIO, version: int, have: str = "") -> bytearray:
    """Return the pack of an answer to `fetch`. Raises HostRefused, or GitProtocolError: anything that wasn't asked for."""
    lines, known = _protocol(stream), f"ACK {have}".encode() if have else b""
    line = _line(lines)
    while line is None or line.startswith((b"shallow", b"unshallow", b"shallow-info")) or (known and line.startswith(known + b" ")):
        line = _line(lines)
    if line != (b"packfile" if version == 2 else b"NAK") and not (known and version != 2 and line == known):
        raise GitProtocolError("an answer that wasn't asked for")
    return _demultiplexed(lines)


def _demultiplexed(lines: Framing) -> bytearray:
    pack = bytearray()
    for packet in _spoken(lines):
        if packet[0] == 1:
            pack += packet[1:]
        elif packet[0] == 3:
            raise HostRefused(packet[1:])
        elif packet[0] != 2:
            raise GitProtocolError("an unknown side-band channel")
    return pack


def _protocol(stream: BinaryIO) -> Framing:
    return Framing(stream.read, lambda _: None)


def _line(lines: Framing) -> bytes | None:
    packet = lines.read_pkt_line()
    return None if packet is None else _checked(packet).strip()


def _checked(packet: bytes) -> bytes:
    """Return a packet. Raises HostRefused: it is the host's ERR."""
    if packet.startswith(b"ERR "):
        raise HostRefused(packet[4:])
    return packet


def _spoken(lines: Framing) -> Iterator[bytes]:
    """Yield the lines up to the end of a section."""
    yield from map(_checked, lines.read_pkt_seq())


def _wanted_lines(lines: Iterable[bytes], wanted: WantedRef | None, position: int) -> Iterator[bytes]:
    """Yield the lines about the wanted ref, and in version 0 the first line, which carries the capabilities. The list isn't kept."""
    kept: list[bytes] = []
    for number, line in enumerate(lines):
        name = line.rstrip(b"\n").split(b" ", 2)[1].partition(b"\0")[0].removesuffix(b"^{}")
        first = position and not number
        if first:
            yield line
        if wanted is None:
            continue
        if wanted.commit in line and wanted.better(name):
            kept = [] if first else [line]
        elif name == wanted.name.encode():
            kept.append(line)
    yield from kept


def _found(refs: Mapping[Ref, ObjectID], peeled: Mapping[Ref, ObjectID], wanted: WantedRef | None) -> Head | None:
    name = Ref(wanted.name.encode() if wanted else b"")
    own = refs.get(name)
    oid = peeled.get(name) or refs.get(Ref(name + b"^{}")) or own
    return Head(oid.decode(), name.decode(), own.decode() if own else "") if oid else None
