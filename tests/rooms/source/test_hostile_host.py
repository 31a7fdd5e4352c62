"""Against hosts that lie: each ends in a named error within its limit."""

from __future__ import annotations

import itertools
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from dulwich.protocol import pkt_line

from handler.model.errors import ConfigInvalid, GitUnavailable, SourceRefused
from handler.source.git_host import GitHost
from handler.source.host_limits import HostLimits
from tests.rooms.source.hostile_answers import LIES, MAIN, PARTS, SHA, SMALL
from tests.rooms.source.hostile_host import FLUSH, Hostile, entry, fetched, pack
from tests.rooms.source.open_repository import CANARY, Secret, following, opened


def fetch_from(host: Hostile, limits: HostLimits = SMALL) -> None:
    with opened(host.url, limits=limits, secret=Secret()) as git:
        git.fetch(SHA)


def test_an_honest_pack_of_the_hostile_host_is_read() -> None:
    with Hostile(pack=lambda: fetched(pack(*PARTS))) as host, opened(host.url) as git:
        assert [found.path for found in git.fetch(SHA).walk("")] == ["app.yaml"]


def test_unrequested_objects_in_a_pack_are_ignored() -> None:
    more = [entry(3, b"more"), *PARTS]
    with Hostile(pack=lambda: fetched(pack(*more))) as host, opened(host.url) as git:
        assert [found.path for found in git.fetch(SHA).walk("")] == ["app.yaml"]


@pytest.mark.parametrize("name", LIES)
def test_each_lie_of_a_git_host_ends_in_a_named_error(name: str) -> None:
    lie = LIES[name]
    with lie.host() as host:
        with pytest.raises(lie.error, match=lie.said) as caught:
            fetch_from(host, lie.limits)
        assert len(host.seen) <= lie.asks
    assert str(caught.value).isprintable()
    assert CANARY not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_blobs_that_the_host_leaves_out_are_named() -> None:
    with Hostile(pack=lambda: fetched(pack(*PARTS[:2]))) as host, opened(host.url) as git:
        tree = git.fetch(SHA)
        (file,) = tree.walk("")
        with pytest.raises(GitUnavailable, match=f"left out object {file.oid}"):
            tree.blobs([file.oid])


def test_a_commit_whose_trees_the_host_left_out_is_asked_for_anew() -> None:
    answers = iter([fetched(pack(*PARTS[:1])), fetched(pack(*PARTS))])
    with Hostile(pack=lambda: next(answers)) as host, opened(host.url) as git:
        with pytest.raises(GitUnavailable, match="left out object"):
            git.fetch(SHA)
        assert [found.path for found in git.fetch(SHA).walk("")] == ["app.yaml"]


def test_a_host_that_filters_but_serves_no_single_blob_sends_the_whole_commit() -> None:
    answers = iter([fetched(pack(*PARTS[:2])), [pkt_line(b"ERR upload-pack: not our ref")], fetched(pack(*PARTS))])
    with Hostile(pack=lambda: next(answers)) as host, opened(host.url) as git:
        tree = git.fetch(SHA, "deploy")
        (entry_,) = tree.walk("")
        assert tree.blobs([entry_.oid]) == {entry_.oid: b"kind: ConfigMap\n"}


def lines(count: int, ref: bytes = b"refs/heads/main") -> Iterator[bytes]:
    """Write an answer of so many refs, a thousand at a time, the wanted one last."""
    for number in range(0, count, 1000):
        yield b"".join(pkt_line(b"1" * 40 + b" refs/heads/main-%d\n" % each) for each in range(number, number + 1000))
    yield pkt_line(SHA.encode() + b" " + ref + b"\n") + FLUSH


def version_0(answer: Iterator[bytes]) -> Iterator[bytes]:
    capabilities = b"\0shallow side-band-64k ofs-delta\n"
    return itertools.chain([pkt_line(b"# service=git-upload-pack\n") + FLUSH, pkt_line(b"2" * 40 + b" HEAD" + capabilities)], answer)


@pytest.mark.parametrize("version", [0, 2])
def test_one_ref_is_found_among_hundreds_of_thousands_and_a_million_are_too_many(version: int) -> None:
    def hosted(answer: Iterator[bytes]) -> Hostile:
        return Hostile(refs=answer) if version else Hostile(offer=version_0(answer))

    with hosted(lines(200_000)) as host, opened(host.url) as git:
        assert git.head(following(MAIN)).commit == SHA
    with hosted(lines(1_000_000)) as host, opened(host.url) as git, pytest.raises(SourceRefused, match="67108864 bytes in one answer"):
        git.head(following(MAIN))


@pytest.mark.parametrize("oid", [b"2" * 64, b"-x", b"ZZ" * 20])
def test_a_ref_that_points_to_no_id_is_refused(oid: bytes) -> None:
    with Hostile(refs=[pkt_line(oid + b" refs/heads/main\n"), FLUSH]) as host, opened(host.url) as git, pytest.raises(GitUnavailable):
        git.head(following(MAIN))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_credentials_never_arrive_there(status: int) -> None:
    with Hostile() as trap, Hostile(status=status, headers={"Location": trap.url + "/info/refs?token=x"}) as host:
        with opened(host.url, secret=Secret()) as git, pytest.raises(ConfigInvalid, match=f"answered {status}, a redirect") as caught:
            git.head(following(MAIN))
        assert trap.seen == []
    assert trap.url not in str(caught.value)


@pytest.mark.parametrize("place", ["/other.git/info/refs", "//127.0.0.1:1/x", "https://deployer:hidden@git.invalid/x", "\x1b[31m", ""])
def test_where_a_redirect_leads_is_not_quoted(place: str) -> None:
    with Hostile(status=302, headers={"Location": place}) as host, opened(host.url, secret=Secret()) as git:
        with pytest.raises(ConfigInvalid, match=r"answered 302, a redirect; .*; see what it says: git ls-remote http://[\d.:]+/shop.git$"):
            git.head(following(MAIN))
        assert len(host.seen) == 1


def test_a_redirect_from_https_to_http_is_refused_and_credentials_never_arrive_there(tmp_path: Path) -> None:
    pem = tmp_path / "host.pem"
    key = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout - -out -"
    made = subprocess.run([*key.split(), "-subj", "/CN=git", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    pem.write_bytes(made.stdout)
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(pem)
    with ExitStack() as stack:
        trap = stack.enter_context(Hostile())
        host = stack.enter_context(Hostile(status=302, headers={"Location": trap.url}, trust=trust))
        git = stack.enter_context(opened(host.url, secret=Secret(), ca_file=str(pem)))
        with pytest.raises(ConfigInvalid, match="answered 302, a redirect"):
            git.head(following(MAIN))
        assert len(host.seen) == 1
        assert trap.seen == []


def test_a_proxy_from_the_environment_is_used_unless_the_host_is_exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    with Hostile(refs=[pkt_line(SHA.encode() + b" refs/heads/main\n"), FLUSH]) as proxy:
        for name in ("HTTP_PROXY", "NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", f"//user:{CANARY}@"))
        with opened("http://git.invalid/shop.git") as git:
            assert git.head(following(MAIN)).commit == SHA
        assert proxy.seen[0][0].startswith("http://git.invalid/shop.git/")
        assert "proxy-authorization" in {name.lower() for name in proxy.seen[0][1]}
        monkeypatch.setenv("no_proxy", "git.invalid")
        with opened("http://git.invalid/shop.git") as git, pytest.raises(GitUnavailable, match="resolve") as caught:
            git.head(following(MAIN))
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
def test_only_full_commit_ids_are_fetched(sha: str) -> None:
    with opened("http://127.0.0.1:9/x") as git, pytest.raises(SourceRefused, match="full commit id"):
        git.fetch(sha)


def test_the_repr_of_a_git_host_shows_no_credentials() -> None:
    with opened("http://127.0.0.1:9/x", secret=Secret()) as git:
        assert isinstance(git, GitHost)
        assert CANARY not in repr(git)
