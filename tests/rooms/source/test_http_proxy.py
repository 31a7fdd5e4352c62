"""HTTP_PROXY, HTTPS_PROXY and NO_PROXY against a real proxy: what it sees, what it never sees, and what it may refuse."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.renderer_settings import ChartSource
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable
from handler.model.outside_inputs import ChartReference
from handler.render.sandbox import Sandbox
from handler.source.http_files import fetch_file
from infra.githost import Host, Work
from tests.rooms.source.certificates import Authority
from tests.rooms.source.chart_servers import fetcher
from tests.rooms.source.http_proxy import Proxy
from tests.rooms.source.open_repository import CANARY, PATIENT, Secret, following, opened

MAIN = "refs/heads/main"
PROXY_PASSWORD = "canary-0b8e21@proxy/password"
QUOTED = "anneal:canary-0b8e21%40proxy%2Fpassword"


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture(params=["http", "https"])
def private(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Host, str, str]]:
    """Run a host that takes only CANARY. Returns it, its commit and the file of its authority."""
    ours = Authority(tmp_path, "ours")
    secure = request.param == "https"
    with Host(tmp_path / "git", certificate=ours.certificate("host") if secure else None) as host:
        host.accounts = {"deployer": CANARY}
        work = Work.of(host, "shop")
        work.write("app.yaml", "kind: ConfigMap\n")
        sha = work.commit("First")
        work.push()
        yield host, sha, str(ours.file) if secure else ""


@pytest.mark.parametrize("upper", [True, False])
def test_a_proxy_with_credentials_leads_to_the_host(private: tuple[Host, str, str], monkeypatch: pytest.MonkeyPatch, upper: bool) -> None:
    host, sha, ca_file = private
    scheme = "https" if ca_file else "http"
    with Proxy(PROXY_PASSWORD) as proxy:
        name = f"{scheme}_proxy"
        monkeypatch.setenv(name.upper() if upper else name, proxy.url(QUOTED))
        with opened(host.url_of("shop"), secret=Secret(), ca_file=ca_file) as git:
            assert git.fetch(git.head(following(MAIN)).commit).commit.sha == sha
        methods = {method for method, _, _ in proxy.seen}
        assert methods == ({"CONNECT"} if ca_file else {"GET", "POST"})
    shown = [headers.get("authorization", "") for _, _, headers in proxy.seen]
    assert all(shown) if not ca_file else not any(shown), "in a tunnel a proxy sees no credentials of ours"


def test_a_host_in_no_proxy_is_asked_without_the_proxy(private: tuple[Host, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    host, sha, ca_file = private
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        monkeypatch.setenv("HTTPS_PROXY", proxy.url())
        monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.1")
        with opened(host.url_of("shop"), secret=Secret(), ca_file=ca_file) as git:
            assert git.head(following(MAIN)).commit == sha
    assert proxy.seen == []


@pytest.mark.parametrize("credentials", ["", "anneal:wrong"])
def test_a_proxy_that_wants_other_credentials_is_told_as_such(
    private: tuple[Host, str, str], monkeypatch: pytest.MonkeyPatch, credentials: str
) -> None:
    host, _, ca_file = private
    with Proxy(PROXY_PASSWORD) as proxy:
        monkeypatch.setenv("HTTPS_PROXY" if ca_file else "HTTP_PROXY", proxy.url(credentials))
        with opened(host.url_of("shop"), ca_file=ca_file) as git, pytest.raises(AccessDenied, match=r"proxy answered 407.*HTTPS_PROXY"):
            git.head(following(MAIN))
    assert host.requests == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_wants_other_credentials_for_a_chart_or_a_file(scheme: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{scheme}://charts.invalid/stable"
    with Proxy(PROXY_PASSWORD) as proxy:
        monkeypatch.setenv(f"{scheme}_proxy", proxy.url("anneal:wrong"))
        with pytest.raises(AccessDenied, match=r"chart web 1\.0\.0: the proxy answered 407.*http://user:password@proxy:port"):
            fetcher(sandbox, ChartSource(url)).fetch(ChartReference(url, "web", "1.0.0"))
        with pytest.raises(AccessDenied, match=r"app\.yaml: the proxy answered 407.*http://user:password@proxy:port"):
            fetch_file(f"{url}/app.yaml")


@pytest.mark.parametrize("proxy", ["socks5://p:1", "http://p:99999", "http://p:abc", "http://[::1", "http://", "http://a..b:3128", "p:abc"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_no_url_is_not_blamed_on_the_host(
    scheme: str, proxy: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{scheme}://charts.invalid/stable"
    monkeypatch.setenv(f"{scheme}_proxy", proxy)
    said = f"^{scheme.upper()}_PROXY: isn't the URL of a proxy; write http://proxy:port"
    with pytest.raises(ConfigInvalid, match=said):
        fetcher(sandbox, ChartSource(url)).fetch(ChartReference(url, "web", "1.0.0"))
    with pytest.raises(ConfigInvalid, match=said):
        fetch_file(f"{url}/app.yaml")
    with pytest.raises(ConfigInvalid, match=said), opened(url) as git:
        git.head(following(MAIN))


def test_a_proxy_that_refuses_connections_is_transient(private: tuple[Host, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    host, _, ca_file = private
    with Proxy() as proxy:
        gone = proxy.url(QUOTED)
    monkeypatch.setenv("HTTPS_PROXY" if ca_file else "HTTP_PROXY", gone)
    with opened(host.url_of("shop"), ca_file=ca_file) as git, pytest.raises(GitUnavailable, match=r"proxy doesn't let us|refuses conn"):
        git.head(following(MAIN))


def test_a_proxy_that_drips_its_answer_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy(drip=True) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url())
        with opened("https://git.invalid/shop.git", limits=replace(PATIENT, total=0.5)) as git:
            with pytest.raises(GitUnavailable, match=r"longer than 0\.5 s"):
                git.head(following(MAIN))
            proxy.drip = False


def test_a_proxys_password_is_in_no_error_and_no_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = []
    with Proxy("another") as proxy:
        for name, url in (("HTTP_PROXY", "http://127.0.0.1:1/shop.git"), ("HTTPS_PROXY", "https://127.0.0.1:1/shop.git")):
            monkeypatch.setenv(name, proxy.url(QUOTED))
            with opened(url) as git:
                with pytest.raises(AnnealError) as caught:
                    git.head(following(MAIN))
                seen.append(f"{caught.value} {caught.value!r} {caught.value.__cause__} {git!r} {vars(git)!r}")
    assert len(proxy.seen) == 2
    assert [text for text in [*seen, caplog.text] if "canary" in text] == []
