"""Charts of a real registry, pushed by the real helm; and a token service before it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handler.cli.chart_lock import lock_charts
from handler.cli.output import Output
from handler.cli.session import Session
from handler.config.renderer_settings import ChartSource
from handler.model.errors import AccessDenied, ChartChanged, ChartNotAllowed, ChartUnavailable, ConfigInvalid
from handler.model.outside_inputs import ChartReference, KnownChart
from handler.render.charts.chart_readers import read_lock
from handler.render.sandbox import Sandbox
from handler.source.charts.chart_pins import ChartPins
from tests.patience import PATIENCE
from tests.rooms.source.certificates import Authority
from tests.rooms.source.chart_servers import (
    AUTH,
    BASIC,
    ChartHost,
    FakeChart,
    Reply,
    digest,
    fetcher,
    forwarded,
    helm,
    packed,
    pushed,
    real_registry,
    token_service,
    web,
)

VERSIONS = ("0.9.0", "1.2.0", "1.10.0", "1.11.0-rc.1", "2.0.0", "2.1.0+build.7")


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The archives of a chart's versions."""
    root = tmp_path_factory.mktemp("charts")
    return {version: packed(root, version) for version in VERSIONS}


@pytest.fixture(scope="module")
def registry(charts: dict[str, Path]) -> Iterator[str]:
    with real_registry() as address:
        for archive in charts.values():
            pushed(address, archive)
        yield address


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def test_a_version_is_fetched_as_it_was_packed(registry: str, charts: dict[str, Path], sandbox: Sandbox) -> None:
    ours = fetcher(sandbox, ChartSource(f"http://{registry}/charts"))
    for version in ("1.2.0", "2.1.0+build.7"):
        found = ours.fetch(ChartReference(f"oci://{registry}/charts/web", "", version))
        assert (found.version, found.data) == (version, charts[version].read_bytes())
        assert found.digest == digest(found.data)


def test_a_dependency_has_its_name_beside_the_url(registry: str, charts: dict[str, Path], sandbox: Sandbox) -> None:
    found = fetcher(sandbox, ChartSource(f"http://{registry}/charts")).fetch(ChartReference(f"oci://{registry}/charts/", "web", "1.2.0"))
    assert found.data == charts["1.2.0"].read_bytes()


@pytest.mark.parametrize("asked", ["^1", "~1.2", ">=1.0.0-0 <2", "*", "<1", "1.x || 0.x"])
def test_a_range_leads_where_helm_goes(registry: str, sandbox: Sandbox, tmp_path: Path, asked: str) -> None:
    found = fetcher(sandbox, ChartSource(f"http://{registry}")).fetch(ChartReference(f"oci://{registry}/charts/web", "", asked))
    pull = ("pull", f"oci://{registry}/charts/web", "--plain-http", "--version", asked, "--destination", str(tmp_path))
    done = helm(*pull, home=tmp_path)
    assert done.returncode == 0, done.stderr
    (helms,) = tmp_path.glob("*.tgz")
    assert found.data == helms.read_bytes()


def test_what_isnt_there(registry: str, sandbox: Sandbox) -> None:
    ours = fetcher(sandbox, ChartSource(f"http://{registry}"))
    with pytest.raises(ChartUnavailable, match="answers 404"):
        ours.fetch(ChartReference(f"oci://{registry}/charts/web", "", "7.0.0"))
    with pytest.raises(ChartUnavailable, match=r"none of its 6 versions at oci://.*/charts/web is in \^7"):
        ours.fetch(ChartReference(f"oci://{registry}/charts/web", "", "^7"))


def test_oci_is_spoken_with_tls_unless_the_prefix_says_http(registry: str, sandbox: Sandbox) -> None:
    with pytest.raises(ConfigInvalid, match="TLS certificate is not trusted"):
        fetcher(sandbox, ChartSource(f"oci://{registry}")).fetch(ChartReference(f"oci://{registry}/charts/web", "", "1.2.0"))


def test_what_is_known_by_its_digest_is_not_asked_for_again(registry: str, charts: dict[str, Path], sandbox: Sandbox) -> None:
    with ChartHost() as front:
        front.otherwise = forwarded(registry, f"{front.address}/token")
        front.answers["/token"] = token_service(password=False)
        ours = fetcher(sandbox, ChartSource(front.address))
        first = ours.fetch(web(front, "1.2.0"))
        asked = len(front.seen)
        pins = ChartPins(ChartPins((), "c1").recorded([first]), "c2")
        assert ours.fetch(web(front, "1.2.0"), pins).data == ours.fetch(web(front, "1.2.0", digest=first.digest)).data == first.data
        assert len(front.seen) == asked


def test_other_bytes_for_a_known_version_are_refused(registry: str, sandbox: Sandbox, tmp_path: Path) -> None:
    pushed(registry, packed(tmp_path, "3.0.0"))
    reference = ChartReference(f"oci://{registry}/charts/web", "", "3.0.0", place="Chart.yaml:7")
    source = ChartSource(f"http://{registry}")
    first = fetcher(sandbox, source).fetch(reference)
    pins = ChartPins(ChartPins((), "c" * 40).recorded([first]), "d" * 40)
    pushed(registry, packed(tmp_path, "3.0.0", value="b"))
    with pytest.raises(ChartChanged) as refused:
        fetcher(sandbox, source).fetch(reference, pins)
    second = fetcher(sandbox, source).fetch(reference)
    (problem,) = refused.value.problems
    assert second.digest != first.digest
    assert f"serves {second.digest}, not {first.digest} as was recorded with commit cccccccccccc" in problem.message
    assert problem.place == "Chart.yaml:7"
    assert f"renderer: {{chart: {{digest: {second.digest}}}}}" in problem.fix
    assert "anneal vendor DIR --lock" in problem.fix


def test_a_registry_under_a_private_authority_is_trusted_by_its_ca_file(sandbox: Sandbox, tmp_path: Path) -> None:
    ours = Authority(tmp_path, "ours")
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(ours.certificate("host"))
    chart = FakeChart()
    with ChartHost(answers=chart.answers(), trust=trust) as host:
        assert fetcher(sandbox, ChartSource(host.oci, ca_file=str(ours.file))).fetch(web(host)).data == chart.archive
        for file in ("", str(Authority(tmp_path, "theirs").file)):
            with pytest.raises(ConfigInvalid, match=r"certificate is not trusted.*charts: \[\{url: oci://.*caFile"):
                fetcher(sandbox, ChartSource(host.oci, AUTH, file)).fetch(web(host))
        assert len(host.seen) == 2
    with pytest.raises(ConfigInvalid, match="no such file"):
        fetcher(sandbox, ChartSource(host.oci, ca_file=str(tmp_path / "missing")))


@pytest.mark.parametrize(
    ("since", "days", "address", "fix"),
    [
        (-3, -1, "127.0.0.1", "renew the host's certificate"),
        (1, 2, "127.0.0.1", "check this machine's clock"),
        (-2, 1, "127.0.0.2", "write the host in its URL as its certificate names it"),
    ],
)
def test_a_registry_whose_certificate_no_authority_would_mend(
    since: int, days: int, address: str, fix: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    ours = Authority(tmp_path, "ours")
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(ours.certificate("host", address, since=since, days=days))
    with ChartHost(trust=trust) as host, pytest.raises(ConfigInvalid, match=rf"{host.address}.*is not trusted.*{fix}") as refused:
        fetcher(sandbox, ChartSource(host.oci, ca_file=str(ours.file))).fetch(web(host))
    assert "caFile" not in str(refused.value)


def test_runs_at_once_share_one_fetch(sandbox: Sandbox) -> None:
    under_way, go = threading.Event(), threading.Event()
    chart = FakeChart()
    with ChartHost(answers=chart.answers()) as host:
        manifest = host.answers["/v2/charts/web/manifests/1.0.0"]
        assert isinstance(manifest, Reply)

        def held(_path: str, _headers: dict[str, str]) -> Reply:
            under_way.set()
            go.wait(PATIENCE)
            return manifest

        host.answers["/v2/charts/web/manifests/1.0.0"] = held
        ours = fetcher(sandbox, ChartSource(host.address))
        joined = threading.Event()
        do = ours._flights._join

        def join(*arguments: Any) -> Any:
            found = do(*arguments)
            if not found[1]:
                joined.set()
            return found

        ours._flights._join = join  # type: ignore[method-assign,assignment]  # sees when the second has joined the first
        with ThreadPoolExecutor() as threads:
            first = threads.submit(ours.fetch, web(host, place="a:1"))
            assert under_way.wait(PATIENCE)
            second = threads.submit(ours.fetch, web(host, place="b:2"))
            assert joined.wait(PATIENCE)
            go.set()
            found = first.result(PATIENCE), second.result(PATIENCE)
    assert [(each.reference.place, each.data) for each in found] == [("a:1", chart.archive), ("b:2", chart.archive)]
    assert len(host.seen) == 2


def test_a_checkout_is_locked_with_what_a_registry_serves(registry: str, charts: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "Chart.yaml").write_text(
        f"apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: [{{name: web, version: ^1, repository: 'oci://{registry}/charts'}}]\n"
    )
    config = tmp_path / "anneal.yaml"
    config.write_text(
        "apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n- name: shop\n  namespaces: [shop]\n  path: web\n"
        "  repository: {url: https://git.example.com/shop.git, auth: {basic: {username: x, password: {env: MISSING}}}}\n"
        f"  charts: [{{url: 'http://{registry}/charts'}}]\n"
    )
    with Session(Output(), {}, config=str(config)) as session:
        (line,) = lock_charts(session, tmp_path)
        known = read_lock(session.sandbox, (tmp_path / "web" / "anneal.lock").read_bytes(), "web/anneal.lock")
    wanted = digest(charts["1.10.0"].read_bytes())
    assert line == f"{tmp_path / 'web' / 'anneal.lock'}: web 1.10.0 {wanted}"
    assert known == (KnownChart(f"oci://{registry}/charts/web", "", "^1", "1.10.0", wanted, place="web/anneal.lock:3"),)


# --- signing in
def test_a_token_service_of_the_registry_has_the_password_and_the_registry_the_token(registry: str, sandbox: Sandbox) -> None:
    with ChartHost() as front:
        front.otherwise = forwarded(registry, f"{front.address}/token")
        front.answers["/token"] = token_service()
        found = fetcher(sandbox, ChartSource(f"{front.address}/charts", AUTH)).fetch(web(front, "^1"))
        assert found.version == "1.10.0"
        assert front.authorizations == ["", BASIC, *["Bearer pull-token"] * 3]
        with pytest.raises(AccessDenied, match=r"answered 401, and no credentials") as refused:
            fetcher(sandbox, ChartSource(f"{front.address}/charts")).fetch(web(front, "1.2.0"))
        assert f"charts: [{{url: {front.address}/charts, auth: {{username:" in str(refused.value)


def test_a_token_service_elsewhere_is_asked_once_it_is_listed(registry: str, sandbox: Sandbox) -> None:
    with ChartHost() as front, ChartHost() as realm:
        front.otherwise = forwarded(registry, f"{realm.address}/token")
        realm.answers["/token"] = token_service()
        with pytest.raises(ChartNotAllowed) as refused:
            fetcher(sandbox, ChartSource(front.address, AUTH)).fetch(web(front, "1.2.0"))
        assert f"asks for a token of {realm.address}, which is below none of the target's `charts`" in str(refused.value)
        assert f"charts: [{{url: {realm.address}}}]" in str(refused.value)
        assert realm.seen == []
        ours = fetcher(sandbox, ChartSource(front.address), ChartSource(f"{realm.address}/token", AUTH))
        assert ours.fetch(web(front, "1.2.0")).version == "1.2.0"
        assert realm.authorizations == [BASIC]
        assert BASIC not in front.authorizations


def test_the_registrys_password_is_not_for_a_token_service_elsewhere(registry: str, sandbox: Sandbox) -> None:
    with ChartHost() as front, ChartHost() as realm:
        front.otherwise = forwarded(registry, f"{realm.address}/token")
        realm.answers["/token"] = token_service(password=False)
        ours = fetcher(sandbox, ChartSource(front.address, AUTH), ChartSource(realm.address))
        assert ours.fetch(web(front, "1.2.0")).version == "1.2.0"
        assert realm.authorizations == [""]
        assert BASIC not in front.authorizations


@pytest.mark.parametrize("realm", ["", "not a url", "https://127.0.0.1@evil/token", "ftp://h/t", "//user@h/"])
def test_a_realm_that_is_no_url(sandbox: Sandbox, realm: str) -> None:
    with ChartHost() as front:
        front.otherwise = forwarded("nowhere", realm)
        with pytest.raises((ChartUnavailable, AccessDenied)):
            fetcher(sandbox, ChartSource(front.address, AUTH)).fetch(web(front))
        assert BASIC not in front.authorizations
