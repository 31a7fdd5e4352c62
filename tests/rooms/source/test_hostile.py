"""Against hosts that lie: each ends in a named error within its limit."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from dulwich.protocol import pkt_line

from handler.model.errors import AnnealError, ConfigInvalid, GitUnavailable, RefNotFound, SourceRefused
from handler.source import GitHost, Limits
from tests.rooms.source.hostile import FLUSH, OFFER, Chunks, Hostile, entry, fetched, pack, small_commit
from tests.rooms.source.opening import CANARY, QUICK, Secret, opened

MAIN = "refs/heads/main"
SHA, PARTS = small_commit()
SMALL = replace(QUICK, refs=1 << 20, pack=1 << 20, objects=1000, object=1 << 16, inflated=1 << 18)


def fetch_from(host: Hostile, limits: Limits = SMALL) -> None:
    with opened(host.url, limits=limits, secret=Secret()) as git:
        git.fetch(SHA)


def test_the_same_host_telling_the_truth_is_believed() -> None:
    with Hostile(pack=lambda: fetched(pack(*PARTS))) as host, opened(host.url) as git:
        assert [found.path for found in git.fetch(SHA).walk("")] == ["app.yaml"]


def endless_progress() -> Chunks:
    yield pkt_line(b"packfile\n")
    yield from itertools.repeat(pkt_line(b"\x02" + b"working " * 1000))


def drip() -> Chunks:
    yield pkt_line(b"packfile\n") + b"fff0\x01"
    for byte in itertools.repeat(b"0"):
        yield byte
        time.sleep(0.05)


def grown(size: int) -> bytes:
    """Write a delta that claims a result of `size` bytes."""
    number = b""
    while size > 0x7F:
        number, size = number + bytes([size & 0x7F | 0x80]), size >> 7
    return b"\x05" + number + bytes([size]) + b"\x90\x05"


BASE = entry(3, b"12345")
LIES: dict[str, tuple[Callable[[], Chunks], type[AnnealError], str]] = {
    "endless progress": (endless_progress, SourceRefused, "more than 1048576 bytes"),
    "endless pack": (lambda: fetched(b"PACK" + bytes(1 << 22)), SourceRefused, "more than 1048576 bytes"),
    "2^32 objects": (lambda: fetched(pack(*PARTS, count=2**32 - 1)), SourceRefused, "4294967295 objects"),
    "more objects than there are": (lambda: fetched(pack(*PARTS, count=9)), GitUnavailable, "broken pack"),
    "fewer objects than there are": (lambda: fetched(pack(*PARTS, count=2)), GitUnavailable, "bytes follow"),
    "an object of 10 GB": (lambda: fetched(pack(*PARTS, entry(3, b"x", size=10 << 30))), SourceRefused, "10737418240 bytes"),
    "many objects at the limit": (lambda: fetched(pack(*[entry(3, bytes(1 << 16))] * 9)), SourceRefused, "declares more than"),
    "a bomb": (lambda: fetched(pack(*PARTS, entry(3, bytes(1 << 24), size=10))), GitUnavailable, "broken pack"),
    "a delta to 10 GB": (lambda: fetched(pack(BASE, entry(6, grown(10 << 30), base=len(BASE)))), SourceRefused, "10737418240 bytes"),
    "a delta longer than it says": (lambda: fetched(pack(BASE, entry(6, grown(3), base=len(BASE)))), GitUnavailable, "broken pack"),
    "a delta on itself": (lambda: fetched(pack(entry(6, grown(5), base=0))), GitUnavailable, "broken pack"),
    "a delta on nothing": (lambda: fetched(pack(entry(7, grown(5), base=b"\x11" * 20))), GitUnavailable, "broken pack"),
    "a delta before the pack": (lambda: fetched(pack(entry(6, grown(5), base=5000))), GitUnavailable, "broken pack"),
    "a number without end": (lambda: fetched(pack(b"\xbf" + b"\xff" * 9000)), GitUnavailable, "without end"),
    "a truncated pack": (lambda: fetched(pack(*PARTS)[:-30]), GitUnavailable, "checksum"),
    "a wrong checksum": (lambda: fetched(pack(*PARTS)[:-1] + b"!"), GitUnavailable, "checksum"),
    "garbage for a pack": (lambda: fetched(b"GARBAGE!" * 20), GitUnavailable, "broken pack"),
    "an empty pack": (lambda: fetched(b""), GitUnavailable, "broken pack"),
    "another commit": (lambda: fetched(pack(*small_commit(b"Other\n")[1])), GitUnavailable, f"something else than commit {SHA}"),
    "no trees": (lambda: fetched(pack(PARTS[0])), GitUnavailable, "left out object"),
    "no answer": (lambda: (), GitUnavailable, "git's protocol"),
    "half a line": (lambda: (b"00ffpack",), GitUnavailable, "git's protocol"),
    "a negative length": (lambda: (b"-001packfile",), GitUnavailable, "git's protocol"),
    "text": (lambda: (b"hello world, this is not git",), GitUnavailable, "git's protocol"),
    "pack URIs": (lambda: (pkt_line(b"packfile-uris\n"), pkt_line(b"1 http://127.0.0.1/x\n"), FLUSH), GitUnavailable, "git's protocol"),
    "an unknown channel": (lambda: (pkt_line(b"packfile\n"), pkt_line(b"\x09x"), FLUSH), GitUnavailable, "git's protocol"),
    "an empty side-band line": (lambda: (pkt_line(b"packfile\n"), b"0004", FLUSH), GitUnavailable, "broken pack"),
    "an error in words": (lambda: (pkt_line(b"ERR no \x1b[31mspace left"),), GitUnavailable, r"the host said: no \\x1b\[31mspace left"),
    "an error in the side-band": (lambda: (pkt_line(b"packfile\n"), pkt_line(b"\x03died")), GitUnavailable, "the host said: died"),
    "a refused want": (lambda: (pkt_line(b"ERR upload-pack: not our ref " + SHA.encode()),), RefNotFound, f"commit {SHA}: is gone"),
    "a dripping answer": (drip, GitUnavailable, "longer than 0.5 s"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_pack_ends_in_a_named_error(lie: str) -> None:
    answer, error, said = LIES[lie]
    limits = replace(SMALL, total=0.5) if lie == "a dripping answer" else SMALL
    with Hostile(pack=answer) as host:
        with pytest.raises(error, match=said) as caught:
            fetch_from(host, limits)
        assert len(host.seen) == 2
    assert str(caught.value).isprintable()
    assert CANARY not in repr(caught.value)


def dripping_head() -> Chunks:
    yield b"HTTP/1.1 200 OK\r\n"
    for _ in itertools.repeat(None):
        yield b"X-Slow: x\r\n"
        time.sleep(0.2)


HEADS: dict[str, tuple[Hostile, type[AnnealError], str]] = {
    "a head that never ends": (Hostile(raw=dripping_head), GitUnavailable, "longer than 0.5 s"),
    "not HTTP": (Hostile(raw=lambda: [b"SSH-2.0-OpenSSH\r\n\r\n"]), GitUnavailable, "broke off"),
    "hanging up": (Hostile(raw=lambda: ()), GitUnavailable, "broke off"),
    "a page": (Hostile(headers={"Content-Type": "text/html; charset=utf-8"}), GitUnavailable, "answered with text/html"),
    "a dumb host": (Hostile(headers={"Content-Type": "text/plain"}), GitUnavailable, "answered with text/plain"),
    "a compressed answer": (Hostile(headers={"Content-Encoding": "gzip"}), GitUnavailable, "answered with"),
    "too many requests": (Hostile(status=429), GitUnavailable, "429"),
    "SHA-256": (Hostile(offer=[OFFER.replace(b"0017object-format=sha1", b"0019object-format=sha256")]), ConfigInvalid, "sha256"),
    "no shallow": (Hostile(offer=[OFFER.replace(b"0019fetch=shallow filter", b"000afetch")]), GitUnavailable, "without its history"),
    "endless refs": (Hostile(offer=itertools.repeat(pkt_line(b"1" * 40 + b" refs/heads/x\n"))), SourceRefused, "more than 1048576 bytes"),
    "nothing": (Hostile(offer=[]), GitUnavailable, "git's protocol"),
    "an empty offer": (Hostile(offer=[FLUSH]), GitUnavailable, "git's protocol"),
    "a ref without a name": (Hostile(offer=[pkt_line(b"1" * 40), FLUSH]), GitUnavailable, "git's protocol"),
}


@pytest.mark.parametrize("lie", HEADS)
def test_a_lying_offer_ends_in_a_named_error(lie: str) -> None:
    host, error, said = HEADS[lie]
    with host, pytest.raises(error, match=said):
        fetch_from(host, replace(SMALL, total=0.5) if "never" in lie else SMALL)


def test_a_host_that_filters_but_serves_no_single_blob_sends_the_whole_commit() -> None:
    answers = iter([fetched(pack(*PARTS[:2])), [pkt_line(b"ERR upload-pack: not our ref")], fetched(pack(*PARTS))])
    with Hostile(pack=lambda: next(answers)) as host, opened(host.url) as git:
        tree = git.fetch(SHA, "deploy")
        (entry_,) = tree.walk("")
        assert tree.blobs([entry_.oid]) == {entry_.oid: b"kind: ConfigMap\n"}


def many_refs() -> Iterator[bytes]:
    for number in range(100_000):
        yield pkt_line(b"1" * 40 + b" refs/heads/main-%d\n" % number)
    yield pkt_line(SHA.encode() + b" refs/heads/main\n") + FLUSH


def test_one_ref_is_found_among_a_hundred_thousand_and_only_up_to_the_limit() -> None:
    with Hostile(refs=many_refs()) as host, opened(host.url) as git:
        assert git.resolve(MAIN) == SHA
    with Hostile(refs=many_refs()) as host, opened(host.url, limits=SMALL) as git, pytest.raises(SourceRefused, match="in one answer"):
        git.resolve(MAIN)


@pytest.mark.parametrize("oid", [b"2" * 64, b"-x", b"ZZ" * 20])
def test_a_ref_that_points_to_no_id_is_refused(oid: bytes) -> None:
    with Hostile(refs=[pkt_line(oid + b" refs/heads/main\n"), FLUSH]) as host, opened(host.url) as git, pytest.raises(GitUnavailable):
        git.resolve(MAIN)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_credentials_never_arrive_there(status: int) -> None:
    with Hostile() as trap, Hostile(status=status, headers={"Location": trap.url + "/info/refs?token=x"}) as host:
        with opened(host.url, secret=Secret()) as git, pytest.raises(ConfigInvalid, match="redirects to") as caught:
            git.resolve(MAIN)
        assert trap.seen == []
    assert "token=x" not in str(caught.value)


def test_a_proxy_from_the_environment_is_used_unless_the_host_is_exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    with Hostile(refs=[pkt_line(SHA.encode() + b" refs/heads/main\n"), FLUSH]) as proxy:
        for name in ("HTTP_PROXY", "NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", f"//user:{CANARY}@"))
        with opened("http://git.invalid/shop.git") as git:
            assert git.resolve(MAIN) == SHA
        assert proxy.seen[0][0].startswith("http://git.invalid/shop.git/")
        assert "proxy-authorization" in {name.lower() for name in proxy.seen[0][1]}
        monkeypatch.setenv("no_proxy", "git.invalid")
        with opened("http://git.invalid/shop.git") as git, pytest.raises(GitUnavailable, match="resolve") as caught:
            git.resolve(MAIN)
        assert CANARY not in repr(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "ssh://-oProxyCommand=x/shop",
        "git://host/x",
        "file:///etc",
        "/srv/git",
        "http:///x",
        "http://[x",
        "http://h:99999/x",
        "http://h/a\nb",
        "http://@h/x",
        "https://me:pw@host/x",
        "https://h/x?y",
        "",
    ],
)
def test_only_plain_http_addresses_are_taken(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught, opened(url):
        pass
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("sha", ["", "main", "1" * 39, "1" * 41, "G" * 40, "A" * 40, "1" * 40 + "\n"])
def test_only_full_ids_are_fetched(sha: str) -> None:
    with opened("http://127.0.0.1:9/x") as git, pytest.raises(SourceRefused, match="full commit id"):
        git.fetch(sha)


def test_the_representation_shows_nothing() -> None:
    with opened("http://127.0.0.1:9/x", secret=Secret()) as git:
        assert isinstance(git, GitHost)
        assert CANARY not in repr(git)
