"""One file over HTTP, from a host that leads away, sends too much, is slow or packs what it sends."""

from __future__ import annotations

import gzip
import itertools
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.model.errors import ConfigInvalid, GitUnavailable, SourceRefused
from handler.source.host_limits import HostLimits
from handler.source.http_files import fetch_file
from tests.rooms.source.certificates import Authority
from tests.rooms.source.chart_servers import Answer, ChartHost, Reply, body

DATA = b"kind: ConfigMap\n"


@pytest.fixture
def host() -> Iterator[ChartHost]:
    with ChartHost(answers={"/app.yaml": body(DATA)}) as running:
        yield running


def leads(url: str) -> Reply:
    return Reply(302, {"Location": url, "Content-Length": "0"})


def test_a_file_is_fetched_also_where_a_redirect_leads(host: ChartHost) -> None:
    host.answers["/latest"] = leads("/app.yaml")
    assert fetch_file(f"{host.address}/latest") == DATA
    assert host.paths() == ["/latest", "/app.yaml"]
    assert host.authorizations == ["", ""]


def test_redirects_in_a_circle_end(host: ChartHost) -> None:
    host.answers["/latest"] = leads("/latest")
    with pytest.raises(SourceRefused, match="is redirected more than 5 times"):
        fetch_file(f"{host.address}/latest")
    assert len(host.seen) == 6


@pytest.mark.parametrize("headers", [{}, {"Location": ""}, {"Location": "/app.yaml"}])
@pytest.mark.parametrize("status", [300, 304, 302])
def test_an_answer_that_leads_nowhere_is_no_redirect(status: int, headers: dict[str, str], host: ChartHost) -> None:
    host.answers["/latest"] = Reply(status, {"Content-Length": "0", **headers})
    if status == 302 and headers.get("Location"):
        assert fetch_file(f"{host.address}/latest") == DATA
        return
    with pytest.raises(GitUnavailable, match=f"/latest: the host answered {status}$"):
        fetch_file(f"{host.address}/latest")
    assert host.paths() == ["/latest"]


def test_a_redirect_never_leaves_tls(host: ChartHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Authority(tmp_path, "ours")
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(ours.certificate("host"))
    answers: dict[str, Reply | Answer] = {"/app.yaml": body(DATA), "/on": leads("/app.yaml"), "/away": leads(f"{host.address}/app.yaml")}
    with ChartHost(answers=answers, trust=trust) as tls:
        monkeypatch.setenv("SSL_CERT_FILE", str(Authority(tmp_path, "theirs").file))
        with pytest.raises(ConfigInvalid, match=r"its TLS certificate is not trusted .*; set SSL_CERT_FILE="):
            fetch_file(f"{tls.address}/on")
        monkeypatch.setenv("SSL_CERT_FILE", str(ours.file))
        assert fetch_file(f"{tls.address}/on") == DATA
        with pytest.raises(SourceRefused, match="is redirected to plain http://"):
            fetch_file(f"{tls.address}/away")
    assert host.seen == []


NONE = ["https://h:99999/x.yaml", "http://h:abc/x", "http://[::1/x", "http://[zz]/x", "http://h:0/x"]
UNKNOWN = ["http://a..b/x", "http://h h/x", f"http://{'a' * 64}.example.com/x"]


@pytest.mark.parametrize("url", [*NONE, "x.yaml", "https:///x.yaml", "http://h/\n"])
def test_what_is_no_url_is_not_blamed_on_a_host(url: str) -> None:
    with pytest.raises(SourceRefused, match=r"isn't a plain http:// or https:// URL$"):
        fetch_file(url)


@pytest.mark.parametrize("url", UNKNOWN)
def test_a_name_that_no_host_can_have_is_not_blamed_on_a_host(url: str) -> None:
    with pytest.raises(SourceRefused, match=r"/x: isn't a URL: no host has such a name or port"):
        fetch_file(url)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://user:canary@127.0.0.1/app.yaml", "ftp://127.0.0.1/", *NONE])
def test_a_redirect_to_what_is_no_plain_url_is_refused(url: str, host: ChartHost) -> None:
    host.answers["/latest"] = leads(url)
    with pytest.raises(SourceRefused, match="/latest: is redirected to what isn't a plain") as refused:
        fetch_file(f"{host.address}/latest")
    assert host.paths() == ["/latest"]
    assert "canary" not in str(refused.value)


def test_a_file_of_the_limit_is_taken_and_a_larger_one_refused(host: ChartHost) -> None:
    assert fetch_file(f"{host.address}/app.yaml", HostLimits(object=len(DATA))) == DATA
    with pytest.raises(SourceRefused, match="has more than 15 bytes"):
        fetch_file(f"{host.address}/app.yaml", HostLimits(object=len(DATA) - 1))
    host.answers["/endless"] = Reply(chunks=itertools.repeat(b"a" * 65536))
    with pytest.raises(SourceRefused, match="has more than 200,000 bytes"):
        fetch_file(f"{host.address}/endless", HostLimits(object=200_000))


def test_a_file_that_drips_ends_at_the_deadline_and_what_came_of_it_is_not_taken(host: ChartHost) -> None:
    host.answers["/slow"] = lambda _path, _headers: Reply(chunks=dripping())
    with pytest.raises(GitUnavailable, match=r"/slow: took longer than 0\.3 s"):
        fetch_file(f"{host.address}/slow", HostLimits(total=0.3))


def dripping() -> Iterator[bytes]:
    while True:
        yield b"#"
        time.sleep(0.02)


def test_a_file_that_ends_before_its_length_is_not_taken(host: ChartHost) -> None:
    host.answers["/cut"] = Reply(headers={"Content-Length": "100"}, chunks=[DATA])
    with pytest.raises(GitUnavailable, match="broke off"):
        fetch_file(f"{host.address}/cut")


def test_a_packed_file_is_never_unpacked(host: ChartHost) -> None:
    host.answers["/packed"] = body(gzip.compress(DATA), Content_Encoding="gzip")
    with pytest.raises(SourceRefused, match="is sent packed"):
        fetch_file(f"{host.address}/packed")


def test_a_file_that_isnt_there(host: ChartHost) -> None:
    with pytest.raises(GitUnavailable, match="the host answered 404"):
        fetch_file(f"{host.address}/other.yaml")
