"""Registries and repositories that lie: where they lead, what they send, how much of it."""

from __future__ import annotations

import gzip
import itertools
import json
import time
from collections.abc import Callable, Iterator

import pytest

from handler.config.renderer_settings import ChartSource
from handler.model.errors import AnnealError, ChartChanged, ChartNotAllowed, ChartUnavailable, ConfigInvalid, RenderFailed, SourceRefused
from handler.model.outside_inputs import ChartReference
from handler.render.sandbox import Sandbox
from handler.source.charts.chart_limits import ChartLimits
from handler.source.charts.oci_registry import ARCHIVE
from tests.rooms.source.chart_servers import ARCHIVED, AUTH, BASIC, ChartHost, FakeChart, Reply, body, digest, fetcher, web

SMALL = ChartLimits(archive=2000, index=2000, manifest=2000, tags=2000, token=2000)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture
def host() -> Iterator[ChartHost]:
    with ChartHost() as running:
        yield running


@pytest.fixture
def elsewhere() -> Iterator[ChartHost]:
    with ChartHost(otherwise=lambda _path, _headers: body(ARCHIVED)) as running:
        yield running


def index(url: str, digest: str = "", version: str = "1.0.0") -> Reply:
    entry = {"version": version, "urls": [url], "digest": digest}
    return body(json.dumps({"apiVersion": "v1", "entries": {"web": [entry]}}).encode())


def listed(host: ChartHost) -> ChartReference:
    return ChartReference(f"{host.address}/stable", "web", "1.0.0")


def endless() -> Iterator[bytes]:
    return itertools.repeat(b"a" * 65536)


# --- where they lead
def test_an_archive_elsewhere_is_fetched_from_a_listed_prefix_alone(host: ChartHost, elsewhere: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = index(f"{elsewhere.address}/charts/web-1.0.0.tgz")
    with pytest.raises(ChartNotAllowed) as refused:
        fetcher(sandbox, ChartSource(host.address, AUTH)).fetch(listed(host))
    assert f"has it at {elsewhere.address}/charts/web-1.0.0.tgz, which is below none of the target's `charts`" in str(refused.value)
    assert f"charts: [{{url: {elsewhere.address}/charts}}]" in str(refused.value)
    assert elsewhere.seen == []
    ours = fetcher(sandbox, ChartSource(host.address, AUTH), ChartSource(f"{elsewhere.address}/charts"))
    assert ours.fetch(listed(host)).data == ARCHIVED
    assert elsewhere.authorizations == [""]


@pytest.mark.parametrize(
    "url",
    ["//{0}/x.tgz", "../../x.tgz", "/x.tgz", "..%2f..%2fx.tgz", "%2e%2e/x.tgz", "http://stable@{0}/x.tgz", "x\\..\\..\\x", "file:///etc/x"],
)
def test_tricks_in_the_path_of_an_archive(url: str, host: ChartHost, elsewhere: ChartHost, sandbox: Sandbox) -> None:
    host.otherwise = elsewhere.otherwise
    host.answers["/stable/index.yaml"] = index(url.format(elsewhere.address.removeprefix("http://")))
    with pytest.raises((ChartNotAllowed, ChartUnavailable)):
        fetcher(sandbox, ChartSource(f"{host.address}/stable", AUTH)).fetch(listed(host))
    assert elsewhere.seen == []
    assert host.paths() == ["/stable/index.yaml"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_elsewhere_is_refused_and_takes_no_password_along(
    status: int, host: ChartHost, elsewhere: ChartHost, sandbox: Sandbox
) -> None:
    host.answers["/stable/index.yaml"] = index("web-1.0.0.tgz")
    host.answers["/stable/web-1.0.0.tgz"] = Reply(
        status, {"Location": f"{elsewhere.address}/stable/web.tgz?signed=canary", "Content-Length": "0"}
    )
    with pytest.raises(ChartNotAllowed, match="redirects to") as refused:
        fetcher(sandbox, ChartSource(host.address, AUTH)).fetch(listed(host))
    assert elsewhere.seen == []
    assert "canary" not in str(refused.value)
    ours = fetcher(sandbox, ChartSource(host.address, AUTH), ChartSource(f"{elsewhere.address}/stable"))
    assert ours.fetch(listed(host)).data == ARCHIVED
    assert elsewhere.authorizations == [""]
    assert host.authorizations == [BASIC] * 4


def test_a_redirect_out_of_the_prefix_of_the_same_host_is_refused(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = Reply(302, {"Location": "/v2/stable/index.yaml", "Content-Length": "0"})
    with pytest.raises(ChartNotAllowed):
        fetcher(sandbox, ChartSource(f"{host.address}/stable", AUTH)).fetch(listed(host))
    assert host.paths() == ["/stable/index.yaml"]


def test_redirects_in_a_circle_end(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = Reply(302, {"Location": "index.yaml", "Content-Length": "0"})
    with pytest.raises(ChartUnavailable, match="redirects more than 5 times"):
        fetcher(sandbox, ChartSource(host.address)).fetch(listed(host))
    assert len(host.seen) == 6


@pytest.mark.parametrize("headers", [{}, {"Location": ""}])
@pytest.mark.parametrize("status", [300, 304, 302])
def test_an_answer_that_leads_nowhere_is_no_redirect(status: int, headers: dict[str, str], host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = Reply(status, {"Content-Length": "0", **headers})
    with pytest.raises(ChartUnavailable, match=f"/stable/index.yaml answers {status}$"):
        fetcher(sandbox, ChartSource(host.address)).fetch(listed(host))
    assert host.paths() == ["/stable/index.yaml"]


def test_a_name_that_no_host_can_have_is_not_blamed_on_a_host(sandbox: Sandbox) -> None:
    with pytest.raises(ConfigInvalid, match=r"web 1\.0\.0: http://a\.\.b/stable/index\.yaml: isn't a URL: no host has such a name"):
        fetcher(sandbox, ChartSource("http://a..b")).fetch(ChartReference("http://a..b/stable", "web", "1.0.0"))


def test_a_blob_elsewhere_gets_no_token_of_the_registry(host: ChartHost, elsewhere: ChartHost, sandbox: Sandbox) -> None:
    chart = FakeChart(ARCHIVED)

    def manifest(_path: str, headers: dict[str, str]) -> Reply:
        challenge = f'Bearer realm="{host.address}/token",service="registry"'
        return body(chart.manifest()) if "Authorization" in headers else body(b"", 401, WWW_Authenticate=challenge)

    host.answers = {
        **chart.answers(),
        "/v2/charts/web/manifests/1.0.0": manifest,
        "/token": body(b'{"token": "canary-token"}'),
        f"/v2/charts/web/blobs/{digest(ARCHIVED)}": Reply(307, {"Location": f"{elsewhere.address}/blob", "Content-Length": "0"}),
    }
    with pytest.raises(ChartNotAllowed):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host))
    assert elsewhere.seen == []
    found = fetcher(sandbox, ChartSource(host.address), ChartSource(elsewhere.address)).fetch(web(host))
    assert found.data == ARCHIVED
    assert elsewhere.authorizations == [""]


def test_a_next_page_of_tags_elsewhere_is_refused(host: ChartHost, elsewhere: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/v2/charts/web/tags/list"] = body(
        b'{"tags": ["1.0.0"]}', Link=f'<{elsewhere.address}/v2/charts/web/tags/list>; rel="next"'
    )
    ours = fetcher(sandbox, ChartSource(host.address), ChartSource(elsewhere.address))
    with pytest.raises(ChartUnavailable, match="a next page elsewhere"):
        ours.fetch(web(host, "^1"))
    assert elsewhere.seen == []


@pytest.mark.parametrize("link", ["</v2/charts/web/tags/list?n=1000>; rel=next", "</v2/charts/web/tags/list?last={0}>; rel=next"])
def test_pages_of_tags_that_go_round_or_on_for_ever_end(link: str, host: ChartHost, sandbox: Sandbox) -> None:
    count = itertools.count()
    host.answers["/v2/charts/web/tags/list"] = lambda _path, _headers: body(b'{"tags": []}', Link=link.format(next(count)))
    with pytest.raises(ChartUnavailable, match="doesn't end"):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host, "^1"))
    assert len(host.seen) <= ChartLimits().pages


# --- what they send
def test_an_archive_that_isnt_what_the_index_says(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = index("web.tgz", "0" * 64)
    host.answers["/stable/web.tgz"] = body(ARCHIVED)
    with pytest.raises(ChartUnavailable) as refused:
        fetcher(sandbox, ChartSource(host.address)).fetch(listed(host))
    assert digest(ARCHIVED) in str(refused.value)
    assert str(refused.value).endswith("index.yaml says another")


def test_something_else_than_an_archive(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = index("web.tgz")
    host.answers["/stable/web.tgz"] = body(b"<html>", Content_Type="application/gzip")
    with pytest.raises(ChartUnavailable, match=r"something else than an archive"):
        fetcher(sandbox, ChartSource(host.address)).fetch(listed(host))


LAYER = FakeChart(ARCHIVED).layer()


@pytest.mark.parametrize(
    ("chart", "said"),
    [
        (FakeChart(ARCHIVED, config="application/vnd.oci.image.config.v1+json"), "something else than a Helm chart"),
        (FakeChart(ARCHIVED, [LAYER, LAYER]), "a chart of 2 archives"),
        (FakeChart(ARCHIVED, [{**LAYER, "mediaType": f"{ARCHIVE}x"}]), "a chart of 0 archives"),
        (FakeChart(ARCHIVED, [{**LAYER, "digest": "md5:00"}]), "without a sha256"),
        (FakeChart(ARCHIVED, [{**LAYER, "digest": "sha256:../../x"}]), "without a sha256"),
        (FakeChart(ARCHIVED, [{**LAYER, "size": True}]), "or a size"),
        (FakeChart(ARCHIVED, [{**LAYER, "size": 1 << 40}]), "at most 20,971,520 are fetched"),
        (FakeChart(ARCHIVED, [{**LAYER, "size": 3}]), "sends more than 3 bytes"),
        (FakeChart(ARCHIVED, [{**LAYER, "size": len(ARCHIVED) + 1}]), f"{len(ARCHIVED)} bytes of sha256"),
    ],
)
def test_a_manifest_that_lies(chart: FakeChart, said: str, host: ChartHost, sandbox: Sandbox) -> None:
    host.answers = chart.answers()
    with pytest.raises(ChartUnavailable, match=said):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host))


def test_a_blob_of_another_digest(host: ChartHost, sandbox: Sandbox) -> None:
    chart = FakeChart(ARCHIVED)
    other = ARCHIVED[:-1] + b"!"
    host.answers = {**chart.answers(), f"/v2/charts/web/blobs/{digest(ARCHIVED)}": body(other)}
    with pytest.raises(ChartUnavailable, match=f"bytes of {digest(other)}, not {len(ARCHIVED)} of {digest(ARCHIVED)}"):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host))


def test_a_manifest_of_another_digest(host: ChartHost, sandbox: Sandbox) -> None:
    chart = FakeChart(ARCHIVED)
    wrong = {"/v2/charts/web/manifests/1.0.0": body(chart.manifest(), Docker_Content_Digest=digest(b"other"))}
    host.answers = {**chart.answers(), **wrong}
    with pytest.raises(ChartUnavailable, match="a manifest of digest"):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host))


def test_other_bytes_than_the_target_names_are_not_even_fetched(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers = FakeChart(ARCHIVED).answers()
    with pytest.raises(ChartChanged, match=f"serves {digest(ARCHIVED)}, not sha256:00"):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host, digest=f"sha256:{'0' * 64}"))
    assert host.paths() == ["/v2/charts/web/manifests/1.0.0"]


@pytest.mark.parametrize("said", [b"[]", b"{", b"\xff", b'{"tags": 1}', b'{"tags": [1]}', b"[" * 100_000])
def test_tags_that_are_nonsense(said: bytes, host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/v2/charts/web/tags/list"] = body(said)
    with pytest.raises(ChartUnavailable, match="answers no "):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host, "^1"))


@pytest.mark.parametrize("said", [b"{}", b'{"token": 1}', b'{"token": "a\\r\\nHost: evil"}', b'{"token": ""}'])
def test_tokens_that_are_nonsense(said: bytes, host: ChartHost, sandbox: Sandbox) -> None:
    challenge = f'Bearer realm="{host.address}/token"'
    host.answers["/v2/charts/web/manifests/1.0.0"] = body(b"", 401, WWW_Authenticate=challenge)
    host.answers["/token"] = body(said)
    with pytest.raises(ChartUnavailable, match="answers no token"):
        fetcher(sandbox, ChartSource(host.address)).fetch(web(host))


# --- how much
BOMB = gzip.compress(b"\0" * (30 << 20))


def archive_of(reply: Callable[[], Reply]) -> Callable[[ChartHost], ChartReference]:
    def prepare(host: ChartHost) -> ChartReference:
        host.answers["/stable/index.yaml"] = index("web.tgz")
        host.answers["/stable/web.tgz"] = lambda _path, _headers: reply()
        return listed(host)

    return prepare


def index_of(reply: Callable[[], Reply]) -> Callable[[ChartHost], ChartReference]:
    def prepare(host: ChartHost) -> ChartReference:
        host.answers["/stable/index.yaml"] = lambda _path, _headers: reply()
        return listed(host)

    return prepare


def registry_of(path: str, version: str = "1.0.0") -> Callable[[ChartHost], ChartReference]:
    def prepare(host: ChartHost) -> ChartReference:
        host.answers[f"/v2/charts/web/{path}"] = lambda _path, _headers: Reply(chunks=endless())
        return web(host, version)

    return prepare


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (archive_of(lambda: Reply(chunks=endless())), "sends more than 2,000 bytes"),
        (index_of(lambda: Reply(chunks=endless())), "sends more than 2,000 bytes"),
        (archive_of(lambda: Reply(headers={"Content-Length": "9" * 30}, chunks=endless())), "sends more than 2,000 bytes"),
        (archive_of(lambda: Reply(headers={"Content-Length": "1000"}, chunks=[ARCHIVED])), "broke off"),
        (index_of(lambda: body(BOMB, Content_Encoding="gzip")), "sends more than 2,000 bytes"),
        (index_of(lambda: body(gzip.compress(b"entries: {}"), Content_Encoding="gzip")), "can't be read"),
        (registry_of("manifests/1.0.0"), "sends more than 2,000 bytes"),
        (registry_of("tags/list", "^1"), "sends more than 2,000 bytes"),
    ],
)
def test_bombs(prepare: Callable[[ChartHost], ChartReference], said: str, host: ChartHost, sandbox: Sandbox) -> None:
    with pytest.raises(ChartUnavailable, match=said):
        fetcher(sandbox, ChartSource(host.address), limits=SMALL).fetch(prepare(host))


def test_an_archive_is_never_unpacked_on_its_way(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = index("web.tgz")
    host.answers["/stable/web.tgz"] = body(BOMB, Content_Encoding="gzip")
    assert fetcher(sandbox, ChartSource(host.address)).fetch(listed(host)).data == BOMB


def test_an_answer_that_drips_ends_at_the_deadline(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = lambda _path, _headers: Reply(chunks=dripping())
    with pytest.raises(ChartUnavailable, match=r"took longer than 0\.3 s"):
        fetcher(sandbox, ChartSource(host.address), limits=ChartLimits(total=0.3)).fetch(listed(host))


def dripping() -> Iterator[bytes]:
    while True:
        yield b"#"
        time.sleep(0.02)


def test_an_index_of_a_hundred_thousand_versions(host: ChartHost, sandbox: Sandbox) -> None:
    rows = "".join(f"  - {{version: 0.0.{number}, urls: [web-{number}.tgz]}}\n" for number in range(100_000))
    host.answers["/stable/index.yaml"] = body(f"entries:\n  web:\n{rows}".encode())
    host.answers["/stable/web-99999.tgz"] = body(ARCHIVED)
    found = fetcher(sandbox, ChartSource(host.address)).fetch(ChartReference(f"{host.address}/stable", "web", "*"))
    assert found.version == "0.0.99999"


ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in itertools.pairwise("abcdefghij")
)


@pytest.mark.parametrize(
    "text",
    [
        f"{ALIASES}entries: {{web: *j}}\n",
        f"{ALIASES}entries: {{web: [{{version: 1.0.0, urls: *j}}]}}\n",
        "entries: &e {web: *e}\n",
        "a: " + "[" * 100_000,
        "entries: {web: [{version: " + "[" * 100_000,
        "entries:\n  web:\n  - version: 1.0.0\n    version: 2.0.0\n",
        "entries: [web]",
        "no: index",
        "<html>",
        "entries: {web: [{version: 1.0.0, urls: ['" + "x" * 3000 + "']}]}",
    ],
)
def test_an_index_that_is_hostile_or_none(text: str, host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = body(text.encode())
    with pytest.raises((ChartUnavailable, RenderFailed)) as refused:
        fetcher(sandbox, ChartSource(host.address)).fetch(listed(host))
    assert isinstance(refused.value, AnnealError)
    assert f"{host.address}/stable/index.yaml" in str(refused.value)


def test_aliases_in_what_isnt_wanted_are_passed(host: ChartHost, sandbox: Sandbox) -> None:
    host.answers["/stable/index.yaml"] = body(f"{ALIASES}entries: {{web: [{{version: 1.0.0, urls: [web.tgz], a: *j}}]}}\n".encode())
    host.answers["/stable/web.tgz"] = body(ARCHIVED)
    assert fetcher(sandbox, ChartSource(host.address)).fetch(listed(host)).data == ARCHIVED


def test_what_a_record_could_keep_but_in_part_is_refused(host: ChartHost, sandbox: Sandbox) -> None:
    """A chart is known by URL, name and version: cut, another chart's bytes would be those of a first use."""
    fetch = fetcher(sandbox, ChartSource(host.address))
    with pytest.raises(SourceRefused, match="its URL, name or version is longer than 1,000 characters"):
        fetch.fetch(ChartReference(f"{host.address}/{'a' * 1000}", "web", "1.0.0"))
    assert not host.seen
    long = "1.0.0-" + ".".join(["a" * 120] * 10)
    host.answers |= {"/stable/index.yaml": index("web.tgz", version=long), "/stable/web.tgz": body(ARCHIVED)}
    with pytest.raises(ChartUnavailable, match="has a version longer than 1,000 characters"):
        fetch.fetch(ChartReference(f"{host.address}/stable", "web", ">=1.0.0-0"))
