"""What a held plan was made from, and which renderer a target has: neither changes between a person's look and a person's yes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handler.config.renderer_settings import ChartSource, RendererSettings, ValuesFrom
from handler.config.settings import HoldAbove, Prune
from handler.config.settings_digest import settings_digest
from handler.model.result import Outcome, Result
from handler.render.jsonnet import gojsonnet
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
from tests.e2e.one_target import STATES, Shop, told
from tests.e2e.rendered_trees import CHART, chart, get, names, push_files
from tests.rooms.source.chart_servers import ChartHost, directory, helm, packed

MAPS = (
    "{{ range until (int .Values.count) }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: map-{{ . }}}\n"
    "data: {colour: {{ $.Values.colour }}}\n{{ end }}\n"
)
STAY = "to stay with that: renderer: {type: file}"


@pytest.fixture
def shop(open_shop: Open, renderers: Path) -> Shop:
    opened = open_shop()
    opened.create_namespace()
    opened.configure(namespace=opened.name, prune=Prune(hold_above=HoldAbove(1, 0.1)))
    return opened


def held(result: Result) -> str:
    """Return the id of a held plan."""
    assert result.outcome is Outcome.HELD, told(result)
    assert result.plan
    assert result.plan.hold
    return result.plan.hold.id


def settings(shop: Shop, colour: str) -> None:
    shop.kubectl.apply(config_map(shop.name, "settings", {"values.yaml": f"colour: {colour}\n"}))


def maps(shop: Shop) -> set[str]:
    return {name for name in names(shop, "configmaps") if name.startswith("map-")}


def colours(shop: Shop) -> set[str]:
    found = shop.kubectl("get", "configmaps", "-n", shop.name)["items"]
    return {each["data"]["colour"] for each in found if each["metadata"]["name"].startswith("map-")}


def test_an_approval_counts_for_the_values_that_were_seen(shop: Shop) -> None:
    settings(shop, "red")
    shop.configure(renderer=RendererSettings(values_from=(ValuesFrom("ConfigMap", "settings"),)))
    push_files(shop, chart({"values.yaml": "count: 4\n", "templates/maps.yaml": MAPS}))
    shop.applied()
    push_files(shop, chart({"values.yaml": "count: 1\n", "templates/maps.yaml": MAPS}))
    first = held(shop.run())
    assert held(shop.run("drift")) == first
    settings(shop, "blue")
    second = held(shop.run("replay", approve=first, actor="ann"))
    assert second != first, "the values have changed"
    assert (len(maps(shop)), colours(shop)) == (4, {"red"})
    shop.applied("replay", approve=second, actor="ann")
    assert (maps(shop), colours(shop)) == ({"map-0"}, {"blue"})


def test_an_approval_counts_for_the_chart_that_was_seen(shop: Shop, tmp_path: Path) -> None:
    with ChartHost(otherwise=directory(tmp_path / "charts")) as host:
        publish(tmp_path, "1.0.0", "a")
        needs = f"{CHART}dependencies: [{{name: web, version: ^1, repository: {host.address}}}]\n".replace("name: web\n", "name: shop\n", 1)
        files = {"Chart.yaml": needs, "templates/maps.yaml": MAPS}
        shop.configure(charts=(ChartSource(host.address),))
        push_files(shop, chart({**files, "values.yaml": "count: 4\ncolour: red\n"}))
        shop.applied()
        push_files(shop, chart({**files, "values.yaml": "count: 1\ncolour: red\n"}))
        first = held(shop.run())
        assert held(shop.run("tick")) == first
        publish(tmp_path, "1.1.0", "b")
        second = held(shop.run("replay", approve=first, actor="ann"))
        assert second != first
        assert (get(shop, "configmap", "web")["data"], len(maps(shop))) == ({"value": "a"}, 4)
        shop.applied("replay", approve=second, actor="ann")
        assert (get(shop, "configmap", "web")["data"], len(maps(shop))) == ({"value": "b"}, 1)


def publish(place: Path, version: str, value: str) -> None:
    """Put a version of the chart into the repository."""
    (place / "charts").mkdir(exist_ok=True)
    shutil.copy(packed(place, version, value=value), place / "charts")
    assert helm("repo", "index", str(place / "charts"), home=place).returncode == 0


def kustomization(shop: Shop) -> dict[str, str]:
    return {
        "deploy/map.yaml": json.dumps(config_map(shop.name, "map")),
        "deploy/kustomization.yaml": "resources: [map.yaml]\nnameSuffix: -of-kustomize\n",
    }


def upgraded(shop: Shop, files: dict[str, str]) -> None:
    """Apply files by the file renderer, and leave the record as the release before renderers wrote it."""
    push_files(shop, {**files, "deploy/.annealignore": "kustomization.yaml\nmap-*\n"})
    shop.configure(renderer=RendererSettings("file"))
    shop.applied()
    shop.configure(renderer=RendererSettings())
    name = f"anneal-{shop.name}"
    data = shop.kubectl("get", "configmap", name, "-n", STATES)["data"]
    applied = json.loads(data["applied.json"]) | {"settings": settings_digest(shop.target)}
    applied = {key: value for key, value in applied.items() if key not in ("renderer", "installed")}
    older = {"applied.json": json.dumps(applied), "target.json": json.dumps(json.loads(data["target.json"]) | {"format": 4})}
    shop.kubectl.run("patch", "configmap", name, "-n", STATES, "--type=merge", "-p", json.dumps({"data": older}))
    assert shop.state().renderer == ""


def test_a_kustomization_that_the_release_before_ignored_is_held_after_the_upgrade(shop: Shop) -> None:
    upgraded(shop, kustomization(shop))
    assert shop.run().outcome is Outcome.UNCHANGED, "the commit is applied"
    result = shop.run("drift")
    waits = held(result)
    assert STAY in result.message
    assert names(shop, "configmaps") == {"map"}
    assert held(shop.run("tick")) == waits
    shop.applied("replay", approve=waits, actor="ann")
    assert names(shop, "configmaps") == {"map-of-kustomize"}


def test_where_the_other_renderer_fails_its_failure_names_the_way_to_stay(shop: Shop) -> None:
    broken = kustomization(shop) | {"deploy/kustomization.yaml": "resources: [map.yaml, https://git.example.com/base]\n"}
    upgraded(shop, broken)
    result = shop.run("drift")
    assert result.outcome is Outcome.FAILED, told(result)
    assert STAY in result.message
    assert "deploy/kustomization.yaml:1" in result.message
    assert names(shop, "configmaps") == {"map"}
    shop.configure(renderer=RendererSettings("file"))
    assert shop.run("drift").outcome in (Outcome.UNCHANGED, Outcome.APPLIED)
    assert names(shop, "configmaps") == {"map"}


JRSONNET = "//tool/rjsonnet"
PROGRAM = """[{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'map-%%.0f' %% (n + %s) }, data: { colour: '%%.1fGi' %% 1.95 } }
for n in std.range(1, 4)]
"""


def rendered_by_jrsonnet(shop: Shop, monkeypatch: pytest.MonkeyPatch, fraction: str) -> None:
    """Apply what the release before made of a program, with its mistakes, and leave the record as it wrote it."""
    program, wrong = gojsonnet.program, {b"'%.1fGi' % 1.95": b"'1.10Gi'", b"'map-%.0f' % (n + 10.7)": b"'map-%d' % n"}

    def mistaken(tool: str, options: Any, search: Any, files: Mapping[str, bytes], lists: Any) -> Any:
        text = files["deploy/main.jsonnet"]
        for right, made in wrong.items():
            text = text.replace(right, made)
        return program(tool, options, search, {**files, "deploy/main.jsonnet": text}, lists)

    with monkeypatch.context() as patch:
        patch.setattr(gojsonnet, "program", mistaken)
        push_files(shop, {"deploy/main.jsonnet": PROGRAM % fraction})
        shop.applied()
    shop.configure()
    name = f"anneal-{shop.name}"
    former = shop.kubectl("get", "configmap", name, "-n", STATES)["data"]
    assert '"//tool/jsonnet"' in former["readsPaths.json"]
    data = {
        "applied.json": json.dumps(json.loads(former["applied.json"]) | {"reads": "a" * 64}),
        "readsPaths.json": former["readsPaths.json"].replace("//tool/jsonnet", JRSONNET),
    }
    shop.kubectl.run("patch", "configmap", name, "-n", STATES, "--type=merge", "-p", json.dumps({"data": data}))


def engine_notes(result: Result) -> list[str]:
    assert result.plan, told(result)
    return [note for note in result.plan.notes if "jrsonnet made the recorded objects" in note]


def test_what_the_former_engine_made_is_rendered_anew_and_one_note_says_why(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered_by_jrsonnet(shop, monkeypatch, "0")
    assert colours(shop) == {"1.10Gi"}
    result = shop.run("drift")
    assert (result.outcome, len(engine_notes(result))) == (Outcome.APPLIED, 1), told(result)
    assert (colours(shop), len(maps(shop))) == ({"2.0Gi"}, 4)
    assert JRSONNET not in shop.state().reads_paths
    assert engine_notes(shop.run("drift")) == []
