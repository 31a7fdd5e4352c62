"""Charts of a repository: real archives and `helm repo index`, behind a plain HTTP server with a password."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from handler.cli.chart_lock import lock_charts
from handler.cli.output import Output
from handler.cli.session import Session
from handler.config.git_settings import SecretRef
from handler.config.renderer_settings import ChartSource
from handler.config.secrets import Secret, Secrets
from handler.model.errors import AccessDenied, ChartChanged, ChartUnavailable, ConfigInvalid, SourceRefused
from handler.model.outside_inputs import ChartReference
from handler.render.sandbox import Sandbox
from handler.source.charts.chart_index_cache import ChartIndexes
from handler.source.charts.chart_pins import ChartPins
from tests.patience import PATIENCE
from tests.rooms.source.chart_servers import (
    AUTH,
    BASIC,
    PASSWORD,
    SECRETS,
    ChartHost,
    FakeChart,
    Reply,
    body,
    digest,
    directory,
    fetcher,
    helm,
    packed,
)

VERSIONS = ("0.9.0", "1.2.0", "1.10.0", "1.11.0-rc.1", "2.0.0", "2.1.0+build.7")
RANGES = ("^1", "~1.2", ">=1.0.0-0 <2", "*", "", "<1", "1 - 1.2", "!=2.x >=1", ">1,<2 || <1", "1.2.0", "v1.2.0", "=2.0.0", ">0.0.0-0", "2")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of packed charts below /stable with their index."""
    root = tmp_path_factory.mktemp("site")
    for version in VERSIONS:
        archive = packed(root / "work", version)
        (root / "stable").mkdir(exist_ok=True)
        archive.rename(root / "stable" / archive.name)
    done = helm("repo", "index", str(root / "stable"), home=root)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def host(site: Path) -> Iterator[ChartHost]:
    with ChartHost(otherwise=directory(site, password=True)) as running:
        yield running


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def stable(host: ChartHost, version: str = "1.2.0", **facts: str) -> ChartReference:
    return ChartReference(f"{host.address}/stable", "web", version, **facts)


def test_a_version_is_fetched_with_the_password(host: ChartHost, site: Path, sandbox: Sandbox) -> None:
    found = fetcher(sandbox, ChartSource(f"{host.address}/stable", AUTH)).fetch(stable(host))
    assert (found.version, found.data) == ("1.2.0", (site / "stable" / "web-1.2.0.tgz").read_bytes())
    assert found.digest == digest(found.data)
    assert host.paths() == ["/stable/index.yaml", "/stable/web-1.2.0.tgz"]
    assert host.authorizations == [BASIC, BASIC]


def test_a_range_leads_where_helm_goes(site: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    with ChartHost(otherwise=directory(site)) as host:
        ours = fetcher(sandbox, ChartSource(host.address))
        for number, asked in enumerate(RANGES):
            found = ours.fetch(stable(host, asked))
            into = tmp_path / str(number)
            into.mkdir()
            done = helm("pull", "web", "--repo", f"{host.address}/stable", "--version", asked, "--destination", str(into), home=tmp_path)
            assert done.returncode == 0, (asked, done.stderr)
            (helms,) = into.glob("*.tgz")
            assert (asked, helms.name) == (asked, f"web-{found.version}.tgz")


def test_without_or_with_a_wrong_password(host: ChartHost, sandbox: Sandbox) -> None:
    with pytest.raises(AccessDenied, match="answered 401, and no credentials are configured") as refused:
        fetcher(sandbox, ChartSource(f"{host.address}/stable")).fetch(stable(host))
    assert f"charts: [{{url: {host.address}/stable, auth: {{username:" in str(refused.value)
    wrong = Secrets(git={PASSWORD: Secret("canary-wrong")})
    with pytest.raises(AccessDenied, match="to our credentials") as refused:
        fetcher(sandbox, ChartSource(f"{host.address}/stable", AUTH), secrets=wrong).fetch(stable(host))
    assert "canary" not in str(refused.value)


class Rotated:
    """A secret whose store has a newer value than was read before."""

    now = Secret("canary-before")

    def read(self, _ref: SecretRef) -> Secret:
        return self.now

    def again(self, ref: SecretRef) -> Secret:
        self.now = SECRETS.read(ref)
        return self.now


def test_a_rotated_password_is_read_anew_once(host: ChartHost, sandbox: Sandbox) -> None:
    ours = fetcher(sandbox, ChartSource(host.address, AUTH), secrets=Rotated())
    assert ours.fetch(stable(host)).version == "1.2.0"
    assert host.paths() == ["/stable/index.yaml", "/stable/index.yaml", "/stable/web-1.2.0.tgz"]


def test_what_is_known_by_its_digest_is_not_asked_for_again(host: ChartHost, sandbox: Sandbox) -> None:
    ours = fetcher(sandbox, ChartSource(host.address, AUTH))
    first = ours.fetch(stable(host, "^1"))
    assert len(host.seen) == 2
    pins = ChartPins(ChartPins((), "c1").recorded([first]), "c1")
    assert ours.fetch(stable(host, "^1"), pins) == first
    assert ours.fetch(stable(host, "1.10.0", digest=first.digest)).data == first.data
    assert len(host.seen) == 2
    ours.fetch(stable(host, "^1"), replace(pins, commit="c2"))  # the next commit resolves the range anew
    assert len(host.seen) > 2


def test_a_digest_that_belongs_to_another_version_is_refused_though_it_is_kept(host: ChartHost, sandbox: Sandbox) -> None:
    ours = fetcher(sandbox, ChartSource(host.address, AUTH))
    other = ours.fetch(stable(host, "2.0.0"))
    with pytest.raises(ChartChanged, match=f"not {other.digest} as is written for the target"):
        ours.fetch(stable(host, "1.2.0", digest=other.digest))


def test_an_index_is_asked_for_once_a_run_and_by_the_next_run_anew(host: ChartHost, sandbox: Sandbox) -> None:
    ours, first = fetcher(sandbox, ChartSource(host.address, AUTH)), ChartIndexes()
    assert [ours.fetch(stable(host, asked), indexes=first).version for asked in ("^1", "~1.2", "2.0.0")] == ["1.10.0", "1.2.0", "2.0.0"]
    assert host.paths().count("/stable/index.yaml") == 1
    ours.fetch(stable(host, "<1"), indexes=ChartIndexes())
    assert host.paths().count("/stable/index.yaml") == 2


def test_a_lock_asks_for_an_index_once(site: Path, tmp_path: Path) -> None:
    with ChartHost(otherwise=directory(site)) as host, Session(Output(), {}) as session:
        for name, asked in (("one", "^1"), ("two", "^2")):
            (tmp_path / name).mkdir()
            dependency = f"{{name: web, version: {asked}, repository: '{host.address}/stable'}}"
            (tmp_path / name / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: 1.0.0\ndependencies: [{dependency}]\n")
        assert [line.split()[2] for line in lock_charts(session, tmp_path)] == ["1.10.0", "2.1.0+build.7"]
    assert host.paths() == ["/stable/index.yaml", "/stable/web-1.10.0.tgz", "/stable/web-2.1.0+build.7.tgz"]


def test_a_run_does_not_wait_for_one_that_asks_by_an_index_seen_before(
    host: ChartHost, site: Path, sandbox: Sandbox, tmp_path: Path
) -> None:
    """The other run's index may be older than this run: what was published between them is what this run is for."""
    under_way, go = threading.Event(), threading.Event()
    ours, first = fetcher(sandbox, ChartSource(host.address, AUTH)), ChartIndexes()
    ours.fetch(stable(host, "2.0.0"), indexes=first)
    older = "/stable/web-1.10.0.tgz"

    def held(path: str, headers: dict[str, str]) -> Reply:
        under_way.set()
        go.wait(PATIENCE)
        found = host.otherwise(path, headers)
        assert isinstance(found, Reply)
        return found

    host.answers[older] = held
    published = packed(tmp_path, "1.12.0")
    host.answers[f"/stable/{published.name}"] = body(published.read_bytes())
    entry = f"web:\n  - {{version: 1.12.0, urls: [{published.name}]}}".encode()
    host.answers["/stable/index.yaml"] = body((site / "stable/index.yaml").read_bytes().replace(b"web:", entry, 1))
    with ThreadPoolExecutor() as threads:
        before = threads.submit(ours.fetch, stable(host, "^1"), indexes=first)
        try:
            assert under_way.wait(PATIENCE)
            assert threads.submit(ours.fetch, stable(host, "^1"), indexes=ChartIndexes()).result(PATIENCE).version == "1.12.0"
        finally:
            go.set()
        assert before.result(PATIENCE).version == "1.10.0"


TOLD = [
    ("version: 1.0.0, name: web", "web", "1.0.0", ""),
    ("version: v1.0.0, name: web", "web", "1.0.0", ""),
    ("version: 1.0.0+b1, name: web", "web", "1.0.0+b2", ""),
    ("version: 1.0.0, name: other", "other", "1.0.0", ""),
    ("version: 1.0.0, name: web", "other", "1.0.0", "has it as web 1.0.0, and the Chart.yaml in its archive says other 1.0.0"),
    ("version: 1.0.0, name: web", "web", "1.0.1", "has it as web 1.0.0, and the Chart.yaml in its archive says web 1.0.1"),
    ("version: 1.0.0, name: web", "other", "9.9.9-rc.1", "has it as web 1.0.0, and the Chart.yaml in its archive says other 9.9.9-rc.1"),
]


@pytest.mark.parametrize(("entry", "name", "version", "said"), TOLD)
def test_an_archive_is_what_its_index_calls_it(entry: str, name: str, version: str, said: str, sandbox: Sandbox, tmp_path: Path) -> None:
    """Helm takes all of these for what is asked for: it compares names of dependencies alone, and of those no version."""
    archive = packed(tmp_path, version, name)
    index = f"apiVersion: v1\nentries: {{web: [{{apiVersion: v2, {entry}, urls: [web.tgz]}}]}}\n"
    with ChartHost(answers={"/index.yaml": body(index.encode()), "/web.tgz": body(archive.read_bytes())}) as host:
        wanted = ChartReference(host.address, "web", "^1")
        ours = fetcher(sandbox, ChartSource(host.address))
        if said:
            for _ in range(2):  # nor is it kept
                with pytest.raises(ChartUnavailable, match=f"chart web \\^1: {host.address}/index.yaml {said}; ask who publishes it"):
                    ours.fetch(wanted)
        else:
            assert ours.fetch(wanted).data == archive.read_bytes()
        done = helm("template", "x", "web", "--repo", host.address, "--version", "^1", home=tmp_path)
        assert (done.returncode, f"Source: {name}/templates" in done.stdout) == (0, True), done.stderr


def test_what_isnt_there(host: ChartHost, sandbox: Sandbox) -> None:
    ours = fetcher(sandbox, ChartSource(host.address, AUTH))
    with pytest.raises(ChartUnavailable, match=r"none of its 6 versions in .*/stable/index.yaml is in \^7"):
        ours.fetch(stable(host, "^7"))
    with pytest.raises(ChartUnavailable, match="knows no chart of that name"):
        ours.fetch(ChartReference(f"{host.address}/stable", "other", "1.2.0"))
    with pytest.raises(ChartUnavailable, match="answers 404"):
        ours.fetch(ChartReference(f"{host.address}/elsewhere", "web", "1.2.0"))


def test_an_entry_may_lie_in_a_registry(sandbox: Sandbox) -> None:
    chart = FakeChart()
    with ChartHost() as host:
        entry = f"version: 1.0.0\n    urls: ['{host.oci}/charts/web:v1.0.0']"
        host.answers = {**chart.answers("v1.0.0"), "/index.yaml": body(f"entries:\n  web:\n  - {entry}\n".encode())}
        found = fetcher(sandbox, ChartSource(host.address)).fetch(ChartReference(host.address, "web", "^1"))
    assert (found.version, found.data) == ("1.0.0", chart.archive)


@pytest.mark.parametrize(
    ("reference", "error", "said"),
    [
        (ChartReference("https://h/x", "", "1"), SourceRefused, "has a name"),
        (ChartReference("https://h/x", "a/b", "1"), SourceRefused, "has a name"),
        (ChartReference("https://h/x?y", "web", "1"), SourceRefused, "query"),
        (ChartReference("https://u:p@h/x", "web", "1"), SourceRefused, "credentials"),
        (ChartReference("file:///etc", "web", "1"), SourceRefused, "is no oci://"),
        (ChartReference("oci://h/a/%2e%2e", "web", "1"), SourceRefused, "escaped"),
        (ChartReference("oci://h/UPPER", "", "1.0.0"), SourceRefused, "names no repository"),
        (ChartReference("https://h/x", "web", "nonsense"), ConfigInvalid, "is not a range of versions"),
    ],
)
def test_what_cant_be_asked_for_is_refused_with_its_place(
    reference: ChartReference, error: type[Exception], said: str, sandbox: Sandbox
) -> None:
    with pytest.raises(error, match=said) as refused:
        fetcher(sandbox, ChartSource("oci://h"), ChartSource("https://h")).fetch(replace(reference, place="Chart.yaml:3"))
    assert str(refused.value).startswith("Chart.yaml:3: chart ")
    assert ":p@" not in str(refused.value)


def test_a_redirect_within_the_prefix_is_followed_with_the_password(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = Reply(302, {"Location": "/stable/latest/index.yaml"})
    host.answers["/stable/latest/index.yaml"] = lambda _, headers: host.otherwise("/stable/index.yaml", headers)
    assert fetcher(sandbox, ChartSource(f"{host.address}/stable", AUTH)).fetch(stable(host)).version == "1.2.0"
    assert host.authorizations == [BASIC] * 3
