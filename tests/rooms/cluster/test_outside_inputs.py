"""What a run takes from elsewhere than git: of the fake API server and of the real one; charts of a server that counts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from handler.app.outside_inputs import TargetInputs
from handler.cluster.discovery import Discovery
from handler.config.git_settings import Repository
from handler.config.renderer_settings import Chart, ChartSource, RendererSettings
from handler.config.settings import Target
from handler.config.settings_shape import Json
from handler.model.errors import ChartUnavailable, ClusterUnavailable, OperatorError
from handler.model.outside_inputs import ChartReference, ClusterFacts, OutsideInputs, chart_read
from handler.render.nix import nixpkgs
from handler.render.render_tools import find
from handler.render.sandbox import Sandbox
from handler.source.charts.chart_pins import ChartPins
from infra.renderers.build import binaries
from tests.rooms.cluster.both_api_servers import Side
from tests.rooms.render.helm_releases import packed
from tests.rooms.source.chart_servers import ChartHost, FakeChart, digest, fetcher, web
from tests.rooms.source.chart_servers import body as reply

SECRET = "//values/Secret/shop-values"


@pytest.fixture
def host() -> Iterator[ChartHost]:
    with ChartHost(answers=FakeChart().answers()) as running:
        yield running


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def target_in(namespace: str) -> Target:
    return Target("shop", Repository("https://git.example.com/shop.git"), (namespace, "other"))


def inputs(side: Side, target: Target | None = None, pins: ChartPins | None = None) -> TargetInputs:
    def unasked() -> None:
        raise AssertionError

    target, discovery = target or target_in(side.namespace), Discovery(side.api)
    return TargetInputs(target, lambda: side.api, lambda: discovery, unasked, pins or ChartPins())  # type: ignore[arg-type]  # no fetcher is asked


def test_the_cluster_is_what_discovery_knows(side: Side) -> None:
    ours: OutsideInputs = inputs(side)
    facts = ours.cluster()
    assert facts == ClusterFacts(ours.ask("//cluster/version"), facts.api_versions)
    assert {"v1", "v1/ConfigMap", "coordination.k8s.io/v1/Lease"} <= set(facts.api_versions)
    assert ours.ask("//cluster/apis") == hashlib.sha256("\n".join(facts.api_versions).encode()).hexdigest()
    assert ours.ask("//nothing/known") == ""


def test_tools_are_known_by_their_bytes(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNEAL_TOOLS", str(binaries()))
    with (binaries() / "helm").open("rb") as program:
        assert inputs(side).ask("//tool/helm") == hashlib.file_digest(program, "sha256").hexdigest() == find("helm").digest


def test_directories_that_the_target_names_are_known_by_their_content(side: Side, tmp_path: Path) -> None:
    (tmp_path / "a.nix").write_text("1")
    (tmp_path / "other").mkdir()
    settings = RendererSettings("nix", nix_path=Json(json.dumps({"nixpkgs": str(tmp_path)})))
    ours = inputs(side, replace(target_in(side.namespace), renderer=settings))
    assert ours.ask(f"//directory/{tmp_path}") == nixpkgs.find("nixpkgs", str(tmp_path)).digest
    assert ours.ask(f"//directory/{tmp_path}/other") == "", "a record may name any directory; only the target's are looked at"


def test_values_are_read_once_a_run(side: Side) -> None:
    path = f"/api/v1/namespaces/{side.namespace}"
    assert inputs(side).values("Secret", "shop-values") is None
    assert inputs(side).ask(SECRET) == ""
    data = {"values.yaml": base64.b64encode(b"a: 1\n").decode(), "raw": base64.b64encode(b"\xff").decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop-values", "namespace": side.namespace}, "data": data}
    live = side.api.post(f"{path}/secrets", body)
    ours = inputs(side)
    seen = ours.ask(SECRET)
    assert seen == f"{live['metadata']['uid']}/{live['metadata']['resourceVersion']}"
    changed = side.api.put(f"{path}/secrets/shop-values", {**live, "data": {}})
    assert ours.values("Secret", "shop-values") == {"values.yaml": b"a: 1\n", "raw": b"\xff"}  # the same answer within a run
    assert ours.ask(SECRET) == seen
    assert inputs(side).values("Secret", "shop-values") == {}
    assert inputs(side).ask(SECRET) == f"{changed['metadata']['uid']}/{changed['metadata']['resourceVersion']}" != seen


def test_a_config_maps_text_and_bytes(side: Side) -> None:
    metadata = {"name": "shop-values", "namespace": side.namespace}
    binary = {"raw": base64.b64encode(b"\xff").decode()}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"values.yaml": "ä"}, "binaryData": binary}
    side.api.post(f"/api/v1/namespaces/{side.namespace}/configmaps", body)
    assert inputs(side).values("ConfigMap", "shop-values") == {"values.yaml": "ä".encode(), "raw": b"\xff"}


def test_values_are_of_the_targets_namespace(side: Side) -> None:
    whole = target_in(side.namespace)
    assert inputs(side, whole).namespace == side.namespace
    assert inputs(side, replace(whole, namespace="other")).namespace == "other"
    assert inputs(side, replace(whole, namespaces=("*",))).namespace == "default"


@pytest.mark.parametrize("data", [{"a": "no base64!"}, {"a": 1}, [1], {"a": None}])
def test_values_that_are_nonsense(data: object, monkeypatch: pytest.MonkeyPatch) -> None:
    class Says:
        def get(self, *_: object, **__: object) -> object:
            return {"metadata": {}, "data": data}

    ours = TargetInputs(target_in("shop"), Says, None, None)  # type: ignore[arg-type]  # nothing else is asked
    with pytest.raises(ClusterUnavailable, match="Secret/shop/values: holds what is no data"):
        ours.values("Secret", "values")


# --- charts
def test_a_chart_is_fetched_once_and_known_by_its_digest(side: Side, host: ChartHost, sandbox: Sandbox) -> None:
    fetch = fetcher(sandbox, ChartSource(host.address))
    ours = replace(inputs(side), fetcher=lambda: fetch)
    reference = web(host, place="Chart.yaml:4")
    found = ours.chart(reference)
    assert (found.reference, found.digest) == (reference, digest(FakeChart().archive))
    asked = len(host.seen)
    assert ours.ask(chart_read(reference)) == ours.chart(web(host)).digest == found.digest
    assert len(host.seen) == asked
    assert [each.digest for each in ours.recorded()] == [found.digest]


@cache
def archive(name: str) -> bytes:
    return packed({f"{name}/Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n"})


def test_the_index_of_a_repository_is_asked_for_once_a_run(side: Side, host: ChartHost, sandbox: Sandbox) -> None:
    entries = {name: [{"version": "1.0.0", "urls": [f"{name}.tgz"]}] for name in ("web", "db")}
    archives = {f"/stable/{name}.tgz": reply(archive(name)) for name in entries}
    host.answers |= {"/stable/index.yaml": reply(json.dumps({"entries": entries}).encode()), **archives}
    fetch = fetcher(sandbox, ChartSource(host.address))
    for run in (1, 2):
        ours = replace(inputs(side), fetcher=lambda: fetch)
        found = [ours.chart(ChartReference(f"{host.address}/stable", name, "^1")) for name in entries]
        assert [each.data for each in found] == [archive("web"), archive("db")]
        assert host.paths().count("/stable/index.yaml") == run


def test_an_index_is_held_no_longer_than_the_render_and_a_chart_stays_known(side: Side, host: ChartHost, sandbox: Sandbox) -> None:
    entries = {name: [{"version": "1.0.0", "urls": [f"{name}.tgz"]}] for name in ("web", "db")}
    archives = {f"/stable/{name}.tgz": reply(archive(name)) for name in entries}
    host.answers |= {"/stable/index.yaml": reply(json.dumps({"entries": entries}).encode()), **archives}
    fetch = fetcher(sandbox, ChartSource(host.address))
    ours = replace(inputs(side), fetcher=lambda: fetch)
    ours.chart(ChartReference(f"{host.address}/stable", "web", "^1"))
    ours.forget_indexes()
    ours.chart(ChartReference(f"{host.address}/stable", "web", "^1"))
    assert host.paths() == ["/stable/index.yaml", "/stable/web.tgz"]
    ours.chart(ChartReference(f"{host.address}/stable", "db", "^1"))
    assert host.paths().count("/stable/index.yaml") == 2


def test_a_chart_that_the_record_knows_is_not_asked_for(side: Side, host: ChartHost, sandbox: Sandbox) -> None:
    ours = replace(inputs(side), fetcher=lambda: fetcher(sandbox, ChartSource(host.address)))
    record = ChartPins((), "c1").recorded([ours.chart(web(host))])
    again = inputs(side, pins=ChartPins(record, "c2"))
    assert again.ask(chart_read(web(host))) == ours.ask(chart_read(web(host)))


def test_a_digest_that_the_target_gives_its_chart_is_not_asked_for(side: Side) -> None:
    given = f"sha256:{'a' * 64}"
    chart = Chart(version="1.0.0", oci="oci://h/charts/web", digest=given)
    target = replace(target_in(side.namespace), renderer=RendererSettings(chart=chart))
    assert inputs(side, target).ask(chart_read(ChartReference("oci://h:443/charts/web", "", "1.0.0"))) == given


def test_a_chart_that_cant_be_had(side: Side, host: ChartHost, sandbox: Sandbox) -> None:
    ours = replace(inputs(side), fetcher=lambda: fetcher(sandbox, ChartSource(host.address)))
    with pytest.raises(ChartUnavailable, match="answers 404"):
        ours.chart(web(host, "2.0.0"))
    elsewhere = replace(ours, fetcher=lambda: fetcher(sandbox))
    with pytest.raises(OperatorError, match="is below none of the target's `charts`"):
        elsewhere.chart(web(host))
