"""What hosts say that isn't so: a table of answers, each with the error it must end in. Said one by one, and all to one process."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha1

from dulwich.protocol import pkt_line

from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable, RefNotFound, SourceRefused
from handler.source.host_limits import HostLimits
from tests.rooms.source.hostile_host import FLUSH, OFFER, Chunks, Hostile, entry, fetched, pack, small_commit
from tests.rooms.source.open_repository import CANARY, PATIENT

MAIN = "refs/heads/main"
SHA, PARTS = small_commit()
SMALL = replace(PATIENT, refs=1 << 20, pack=1 << 20, objects=1000, object=1 << 16, inflated=1 << 18, entries=2000)
HASTE = replace(SMALL, total=0.5)
REFUSED = r"the host refused by git's ERR; see what it says: git ls-remote \S+$"


@dataclass(frozen=True)
class Lie:
    """One hostile host. `asks`: how many requests it gets at most."""

    host: Callable[[], Hostile]
    error: type[AnnealError]
    said: str
    limits: HostLimits = SMALL
    asks: int = 2


def packing(answer: Callable[[], Chunks], error: type[AnnealError], said: str, limits: HostLimits = SMALL) -> Lie:
    """Lie in the answer to a fetch."""
    return Lie(lambda: Hostile(pack=answer), error, said, limits)


def sent(*parts: bytes, error: type[AnnealError] = GitUnavailable, said: str = "broken pack") -> Lie:
    """Send a pack of these entries."""
    return packing(lambda: fetched(pack(*parts)), error, said)


def raw(*parts: bytes, said: str, error: type[AnnealError] = GitUnavailable, limits: HostLimits = SMALL, asks: int = 2) -> Lie:
    """Write bytes in place of an HTTP answer, the last part for ever if it ends in `...`."""
    return Lie(lambda: Hostile(raw=lambda: endlessly(parts)), error, said, limits, asks)


def endlessly(parts: tuple[bytes, ...]) -> Iterator[bytes]:
    for part in parts:
        if part.endswith(b"..."):
            yield from itertools.repeat(part[:-3])
        yield part


def repeated(line: bytes, first: bytes = b"") -> Callable[[], Chunks]:
    """Send a block of one line over and over."""
    return lambda: itertools.chain([first], itertools.repeat(line * max(1, 32768 // len(line))))


def dripping(first: bytes, rest: bytes) -> Callable[[], Chunks]:
    def drip() -> Chunks:
        yield first
        for _ in itertools.repeat(None):
            yield rest
            time.sleep(0.05)

    return drip


def grown(size: int) -> bytes:
    """Write a delta that claims a result of `size` bytes."""
    number = b""
    while size > 0x7F:
        number, size = number + bytes([size & 0x7F | 0x80]), size >> 7
    return b"\x05" + number + bytes([size]) + b"\x90\x05"


def resealed(data: bytes) -> bytes:
    """Give altered bytes of a pack a right checksum."""
    return data + sha1(data).digest()


BASE = entry(3, b"12345")
PACKFILE = pkt_line(b"packfile\n")
WHOLE = pack(*PARTS)
ENDLESS = "more than 1048576 bytes"
PROTOCOL = "git's protocol"
PACKS = {
    "endless progress": packing(repeated(pkt_line(b"\x02" + b"working " * 1000), PACKFILE), SourceRefused, ENDLESS),
    "endless keep-alives": packing(repeated(b"0005\x01", PACKFILE), SourceRefused, ENDLESS),
    "endless progress before the pack": packing(repeated(pkt_line(b"shallow " + b"1" * 40)), SourceRefused, ENDLESS),
    "endless ends of sections": packing(repeated(FLUSH), SourceRefused, ENDLESS),
    "endless pack": packing(lambda: fetched(b"PACK" + bytes(1 << 22)), SourceRefused, ENDLESS),
    "2^32 objects": packing(lambda: fetched(pack(*PARTS, count=2**32 - 1)), SourceRefused, "4294967295 objects"),
    "a million tiny objects": packing(lambda: fetched(pack(*[entry(3, b"")] * 10, count=1_000_000)), SourceRefused, "1000000 objects"),
    "tiny objects, more than allowed": sent(*[entry(3, b"%d" % n) for n in range(1001)], error=SourceRefused, said="1001 objects"),
    "more objects than there are": packing(lambda: fetched(pack(*PARTS, count=9)), GitUnavailable, "broken pack"),
    "fewer objects than there are": packing(lambda: fetched(pack(*PARTS, count=2)), GitUnavailable, "bytes follow"),
    "an object of 10 GB": sent(*PARTS, entry(3, b"x", size=10 << 30), error=SourceRefused, said="10737418240 bytes"),
    "many objects at the limit": sent(*[entry(3, bytes(1 << 16))] * 9, error=SourceRefused, said="declares more than"),
    "a bomb": sent(*PARTS, entry(3, bytes(1 << 24), size=10)),
    "a bomb that says so": sent(*PARTS, entry(3, bytes(1 << 24)), error=SourceRefused, said="16777216 bytes"),
    "a delta to 10 GB": sent(BASE, entry(6, grown(10 << 30), base=len(BASE)), error=SourceRefused, said="10737418240 bytes"),
    "a late delta to 10 GB": sent(entry(7, grown(10 << 30), base=b"\1" * 20), error=SourceRefused, said="10737418240 bytes"),
    "many late deltas to the limit": sent(*[entry(7, grown(1 << 16), base=b"\1" * 20)] * 9, error=SourceRefused, said="declares more than"),
    "a delta longer than it says": sent(BASE, entry(6, grown(3), base=len(BASE))),
    "a delta on itself": sent(entry(6, grown(5), base=0)),
    "a delta on nothing": sent(entry(7, grown(5), base=b"\x11" * 20), said="base is missing"),
    "deltas on each other": sent(entry(7, grown(5), base=b"\1" * 20), entry(7, grown(5), base=b"\2" * 20), said="base is missing"),
    "a delta before the pack": sent(entry(6, grown(5), base=5000)),
    "a number without end": sent(b"\xbf" + b"\xff" * 9000, said="without end"),
    "a type that isn't": sent(entry(3, b"x").replace(b"\x31", b"\x51", 1)),
    "a truncated pack": packing(lambda: fetched(WHOLE[:-30]), GitUnavailable, "checksum"),
    "a truncated pack with a right checksum": packing(lambda: fetched(resealed(WHOLE[:-30])), GitUnavailable, "broken pack"),
    "a pack's header alone": packing(lambda: fetched(WHOLE[:12]), GitUnavailable, "broken pack"),
    "another version": packing(lambda: fetched(resealed(WHOLE[:7] + b"\x09" + WHOLE[8:-20])), GitUnavailable, "broken pack"),
    "a wrong checksum": packing(lambda: fetched(WHOLE[:-1] + b"!"), GitUnavailable, "checksum"),
    "garbage behind": packing(lambda: fetched(resealed(WHOLE[:-20] + b"garbage")), GitUnavailable, "bytes follow"),
    "garbage for a pack": packing(lambda: fetched(b"GARBAGE!" * 20), GitUnavailable, "broken pack"),
    "an empty pack": packing(lambda: fetched(b""), GitUnavailable, "broken pack"),
    "another commit": sent(*small_commit(b"Other\n")[1], said=f"something else than commit {SHA}"),
    "no trees": sent(PARTS[0], said="left out object"),
    "half an answer": packing(lambda: [b"".join(fetched(WHOLE))[:-20]], GitUnavailable, PROTOCOL),
    "no end": packing(lambda: [b"".join(fetched(WHOLE))[:-4]], GitUnavailable, PROTOCOL),
    "no answer": packing(lambda: (), GitUnavailable, PROTOCOL),
    "half a line": packing(lambda: (b"00ffpack",), GitUnavailable, PROTOCOL),
    "a negative length": packing(lambda: (b"-001packfile",), GitUnavailable, PROTOCOL),
    "a length of three": packing(lambda: (b"0003",), GitUnavailable, PROTOCOL),
    "a length that isn't hex": packing(lambda: (b"00g5x", FLUSH), GitUnavailable, PROTOCOL),
    "the longest line": packing(lambda: (PACKFILE, b"ffff\x01" + bytes(65530), FLUSH), GitUnavailable, "broken pack"),
    "text": packing(lambda: (b"hello world, this is not git",), GitUnavailable, PROTOCOL),
    "pack URIs": packing(lambda: (pkt_line(b"packfile-uris\n"), pkt_line(b"1 http://127.0.0.1/x\n"), FLUSH), GitUnavailable, PROTOCOL),
    "an unknown channel": packing(lambda: (PACKFILE, pkt_line(b"\x09x"), FLUSH), GitUnavailable, PROTOCOL),
    "an empty side-band line": packing(lambda: (PACKFILE, b"0004", FLUSH), GitUnavailable, "broken pack"),
    "an error in words": packing(lambda: (pkt_line(b"ERR no \x1b[31mspace left"),), GitUnavailable, REFUSED),
    "an error in the side-band": packing(lambda: (PACKFILE, pkt_line(b"\x03died")), GitUnavailable, REFUSED),
    "an error with our password": packing(lambda: (pkt_line(b"ERR " + CANARY.encode()),), GitUnavailable, REFUSED),
    "an error without end": packing(lambda: (pkt_line(b"ERR " + b"x" * 65000),), GitUnavailable, REFUSED),
    "a refused want": packing(lambda: (pkt_line(b"ERR upload-pack: not our ref " + SHA.encode()),), RefNotFound, f"commit {SHA}: is gone"),
    "a dripping answer": packing(dripping(PACKFILE + b"fff0\x01", b"0"), GitUnavailable, "longer than 0.5 s", HASTE),
}

OK = b"HTTP/1.1 200 OK\r\n"
TYPED = OK + b"Content-Type: application/x-git-upload-pack-advertisement\r\n"
CHUNKED = TYPED + b"Transfer-Encoding: chunked\r\n\r\n"
LONGER = "longer than 0.5 s"
HEADS = {
    "a head that never ends": Lie(lambda: Hostile(raw=dripping(OK, b"X-Slow: x\r\n")), GitUnavailable, "longer than|broke off", HASTE, 1),
    "a head without end": raw(OK, b"X-Long: " + b"x" * 65536 + b"...", said="broke off"),
    "a thousand headers": raw(OK, b"X-Many: x\r\n" * 1000 + b"...", said="broke off"),
    "interim answers without end": raw(b"HTTP/1.1 100 Continue\r\n\r\n...", said=LONGER, limits=HASTE),
    "a chunk's size without end": raw(CHUNKED, b"1" * 65536 + b"...", said="broke off|git's protocol"),
    "a negative chunk": raw(CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n", said="broke off|git's protocol"),
    "trailers without end": raw(
        CHUNKED, b"4\r\n0000\r\n0\r\n", b"X-More: x\r\n...", said="git's protocol|broke off|longer than", limits=HASTE
    ),
    "fewer bytes than it says": raw(TYPED + b"Content-Length: 5000\r\n\r\n", OFFER[:40], said="broke off|git's protocol"),
    "a negative length": raw(TYPED + b"Content-Length: -1\r\n\r\n", b"x", said=PROTOCOL),
    "not HTTP": raw(b"SSH-2.0-OpenSSH\r\n\r\n", said="broke off"),
    "hanging up": Lie(lambda: Hostile(raw=lambda: ()), GitUnavailable, "broke off"),
    "a page": Lie(lambda: Hostile(headers={"Content-Type": "text/html; charset=utf-8"}), GitUnavailable, "answered with text/html"),
    "a dumb host": Lie(lambda: Hostile(headers={"Content-Type": "text/plain"}), GitUnavailable, "answered with text/plain"),
    "a compressed answer": Lie(lambda: Hostile(headers={"Content-Encoding": "gzip"}), GitUnavailable, "answered with"),
    "too many requests": Lie(lambda: Hostile(status=429), GitUnavailable, "429"),
    "a part": Lie(lambda: Hostile(status=206), GitUnavailable, "206"),
    "401 for ever": Lie(lambda: Hostile(status=401, headers={"WWW-Authenticate": "Basic"}), AccessDenied, "401", SMALL, 1),
    "403 for ever": Lie(lambda: Hostile(status=403), AccessDenied, "403", SMALL, 1),
    "SHA-256": Lie(lambda: Hostile(offer=[OFFER.replace(b"0017object-format=sha1", b"0019object-format=sha256")]), ConfigInvalid, "sha256"),
    "no shallow": Lie(
        lambda: Hostile(offer=[OFFER.replace(b"0019fetch=shallow filter", b"000afetch")]), GitUnavailable, "without its history"
    ),
    "endless refs": Lie(lambda: Hostile(offer=itertools.repeat(pkt_line(b"1" * 40 + b" refs/heads/x\n"))), SourceRefused, ENDLESS),
    "endless capabilities": Lie(
        lambda: Hostile(offer=itertools.chain([pkt_line(b"version 2\n")], (pkt_line(b"x%d" % n) for n in itertools.count()))),
        GitUnavailable,
        PROTOCOL,
    ),
    "an error for an offer": Lie(lambda: Hostile(offer=[pkt_line(b"ERR \x1b[2Jclosed")]), GitUnavailable, REFUSED),
    "nothing": Lie(lambda: Hostile(offer=[]), GitUnavailable, PROTOCOL),
    "an empty offer": Lie(lambda: Hostile(offer=[FLUSH]), GitUnavailable, PROTOCOL),
    "a ref without a name": Lie(lambda: Hostile(offer=[pkt_line(b"1" * 40), FLUSH]), GitUnavailable, PROTOCOL),
}
LIES = {**{f"pack: {name}": lie for name, lie in PACKS.items()}, **{f"head: {name}": lie for name, lie in HEADS.items()}}
