"""`anneal render -f DIR` of kustomizations and charts as they lie in a checkout: what lies beside DIR counts; judged by the real tools."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from infra.githost import Host, Work
from infra.renderers.build import binaries
from tests.patience import PATIENCE
from tests.rooms.render.kustomize_trees import CHART, charted, config, public_tools
from tests.rooms.render.nix_modules import LIB, module, nix_tools
from tests.rooms.source.chart_servers import ChartHost, directory, helm, packed

OVERLAY = {
    "apps/base/kustomization.yaml": "resources: [a.yaml]\n",
    "apps/base/a.yaml": config("a"),
    "apps/prod/kustomization.yaml": "resources: [../base]\nnamePrefix: prod-\n",
}


@pytest.fixture(autouse=True)
def tools() -> Iterator[Path]:
    with public_tools() as found:
        yield found


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository without a commit; the present directory is elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "work/.git").mkdir(parents=True)
    return tmp_path / "work"


def lay(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def run(path: Path | str, *more: str, code: int = 0) -> Result:
    command = ["render", *more] if path == "" else ["render", "-f", str(path), "--name", "x", "-n", "shop", *more]
    result = CliRunner(env={"ANNEAL_CONFIG": None}).invoke(anneal, command)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def named(path: Path | str) -> list[str]:
    return [item["object"]["metadata"]["name"] for item in json.loads(run(path, "-o", "json").stdout)["items"]]


def built(path: Path) -> list[Any]:
    """The names of what `kustomize build` prints."""
    done = subprocess.run([binaries() / "kustomize", "build", path], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return [line.partition("name: ")[2] for line in done.stdout.splitlines() if line.startswith("  name: ")]


# --- programs
def test_a_program_of_jsonnet_gets_what_it_imports_of_the_checkout(checkout: Path) -> None:
    made = "{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: import 'name.libsonnet' } }"
    files = {"env/prod/main.jsonnet": "import '../base.libsonnet'", "env/base.libsonnet": made, "lib/name.libsonnet": "'a'"}
    lay(checkout, files)
    assert named(checkout / "env/prod") == ["a"]
    assert "# env/prod/main.jsonnet:$\n" in run(checkout / "env/prod").stdout
    (checkout / "lib/name.libsonnet").unlink()
    assert "env/base.libsonnet:1: name.libsonnet: isn't in commit" in run(checkout / "env/prod", code=1).stderr


# --- kustomizations
def test_an_overlay_takes_its_base_from_the_checkout_around_it(checkout: Path) -> None:
    lay(checkout, OVERLAY)
    assert named(checkout / "apps/prod") == built(checkout / "apps/prod") == ["prod-a"]
    assert "# apps/base/a.yaml:1\n" in run(checkout / "apps/prod").stdout


def test_what_isnt_named_isnt_read(checkout: Path) -> None:
    lay(checkout, OVERLAY)
    (checkout / "apps/.cache").mkdir()
    (checkout / "apps/.cache/socket").symlink_to("/nowhere")
    with (checkout / "disk.img").open("wb") as large:
        large.truncate(1 << 30)
    assert named(checkout / "apps/prod") == ["prod-a"]


def test_a_directory_that_one_entry_names_a_part_of_is_whole_for_another(checkout: Path) -> None:
    lay(
        checkout,
        {
            "base/kustomization.yaml": "resources: [part, a.yaml]\n",
            "base/a.yaml": config("a"),
            "base/part/kustomization.yaml": "resources: [b.yaml]\n",
            "base/part/b.yaml": config("b"),
            "first/kustomization.yaml": "resources: [../base/part]\nnamePrefix: first-\n",
            "second/kustomization.yaml": "resources: [../third]\n",
            "third/kustomization.yaml": "resources: [../base]\n",
            "over/kustomization.yaml": "resources: [../first, ../second]\n",
        },
    )
    assert named(checkout / "over") == sorted(built(checkout / "over")) == ["a", "b", "first-b"]


@pytest.mark.parametrize("link", ["apps/base", "apps/prod/base"])
def test_links_lead_to_what_the_checkout_has(checkout: Path, link: str) -> None:
    lay(checkout, {"shared/web/kustomization.yaml": "resources: [a.yaml]\n", "shared/web/a.yaml": config("a")})
    up = "../base" if link == "apps/base" else "base"
    lay(checkout, {"apps/prod/kustomization.yaml": f"resources: [{up}]\nnamePrefix: p-\n"})
    (checkout / link).symlink_to("../" * link.count("/") + "shared/web")
    assert named(checkout / "apps/prod") == built(checkout / "apps/prod") == ["p-a"]


def test_nothing_outside_of_the_checkout_is_read(checkout: Path) -> None:
    lay(checkout.parent, {"secret/kustomization.yaml": "resources: [a.yaml]\n", "secret/a.yaml": config("canary")})
    lay(checkout, {"prod/kustomization.yaml": "resources: [../../secret]\n", "link/kustomization.yaml": "resources: [out]\n"})
    (checkout / "link/out").symlink_to("../../secret")
    assert "../../secret: leads out of the repository" in run(checkout / "prod", code=1).stderr
    refused = run(checkout / "link", code=1)
    assert "leads out of the repository" in refused.stderr
    assert "canary" not in refused.output


def test_without_a_repository_the_present_directory_holds_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, OVERLAY)
    monkeypatch.chdir(tmp_path / "apps/prod")
    assert "without a git repository around them, call anneal in a directory that holds both" in run(".", code=1).stderr
    monkeypatch.chdir(tmp_path)
    assert named("apps/prod") == ["prod-a"]


def test_charts_of_a_kustomization_are_inflated_as_by_enable_helm(checkout: Path) -> None:
    lay(checkout, {"app/kustomization.yaml": "helmCharts: [{name: cache, releaseName: r}]\n", **charted("app/charts/cache")})
    assert named(checkout / "app") == ["r-cache"]


def test_a_kustomization_that_is_named_as_a_file_is_told_the_directory(checkout: Path) -> None:
    lay(checkout, OVERLAY)
    told = run(checkout / "apps/prod/kustomization.yaml", code=1).stderr
    assert f"anneal apply -f {checkout}/apps/prod --name x -n shop -y" in told


# --- charts
def test_a_dependency_by_path_is_taken_from_the_checkout(checkout: Path) -> None:
    needs = "apiVersion: v2\nname: app\nversion: 1.0.0\ndependencies: [{name: cache, version: 1.2.3, repository: 'file://../cache'}]\n"
    lay(checkout, {"charts/app/Chart.yaml": needs, **charted("charts/cache", CHART)})
    assert named(checkout / "charts/app") == ["x-cache"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChartHost]:
    """A repository of chart web, 1.2.0."""
    archive = packed(tmp_path / "site", "1.2.0")
    assert helm("repo", "index", str(archive.parent), home=tmp_path).returncode == 0
    with ChartHost(otherwise=directory(archive.parent)) as host:
        yield host


def test_a_missing_dependency_names_the_command_that_gets_it(checkout: Path, site: ChartHost) -> None:
    needs = f"dependencies: [{{name: web, version: ^1, repository: '{site.address}'}}]\n"
    lay(checkout, {"app/Chart.yaml": f"apiVersion: v2\nname: app\nversion: 1.0.0\n{needs}"})
    told = run(checkout / "app", code=1).stderr
    program, *words = shlex.split(told.strip().partition("; or let git hold it: ")[2])
    done = subprocess.run([binaries() / program, *words], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert named(checkout / "app") == ["web"]


def test_a_chart_from_elsewhere_is_rendered_without_a_cluster(tmp_path: Path, site: ChartHost) -> None:
    with Host() as host:
        work = Work.of(host, "acme/shop").write("readme", "hello")
        work.commit("First")
        work.push()
        target = {
            "name": "shop",
            "repository": {"url": host.url_of("acme/shop")},
            "namespaces": ["shop"],
            "renderer": {"type": "helm", "chart": {"repository": site.address, "name": "web", "version": "^1"}},
            "charts": [{"url": site.address}],
        }
        configured = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "targets": [target]}
        (tmp_path / "anneal.yaml").write_text(json.dumps(configured))
        assert "name: web\n" in run("", "-c", str(tmp_path / "anneal.yaml")).stdout


def test_notes_of_a_render_are_told(checkout: Path) -> None:
    asks = "{{ lookup `v1` `Secret` `a` `b` | toJson | quote }}"
    template = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  found: {asks}\n"
    lay(checkout, {"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "app/templates/a.yaml": template})
    assert "lookup at app/templates/a.yaml:6: finds nothing here" in run(checkout / "app").stderr


def test_modules_of_kubernixos_are_evaluated_with_what_they_name(checkout: Path) -> None:
    files = {
        **LIB,
        "hosts/prod/kubernixos.nix": "{ imports = [ ../../modules/web.nix ]; }\n",
        "modules/web.nix": module("builtins.readFile ../data/text", "web"),
        "data/text": "of the checkout",
        "unrelated/broken.nix": "{",
    }
    lay(checkout, files)
    with nix_tools():
        [item] = json.loads(run(checkout / "hosts/prod", "-o", "json").stdout)["items"]
    assert item["object"]["data"] == {"x": "of the checkout"}
