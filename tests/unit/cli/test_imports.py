"""`anneal import`: files, directories and standard input in, a configuration that loads out; refusals and exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from handler.cli.imports import TEMPLATES
from handler.config.load import parse
from handler.config.settings import Target
from tests.unit.cli.importing.custom_resources import GIT_URL, app, git, ks, release, repo
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow


def run(*arguments: str | Path, code: int = 0, stdin: str | None = None) -> Result:
    result = CliRunner(env={"ANNEAL_CONFIG": None}).invoke(anneal, ["import", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def targets(result: Result) -> tuple[Target, ...]:
    return parse(result.stdout).targets


def written(place: Path, *documents: Any) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(yaml.safe_dump_all(documents))
    return place


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Objects that refer to each other across files, beside what they are not."""
    monkeypatch.chdir(tmp_path)
    written(Path("clusters/sources/git.yaml"), git())
    written(Path("clusters/apps.yaml"), {"apiVersion": "v1", "kind": "List", "items": [ks(), app()]})
    written(Path("clusters/cm.yaml"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    Path("clusters/values.yaml").write_text("a: 1\n")
    written(Path("clusters/chart/Chart.yaml"), {"name": "web", "version": "1.0.0"})
    Path("clusters/chart/templates").mkdir()
    Path("clusters/chart/templates/a.yaml").write_text("a: {{ .Values.a }}\n{{- if }}\n")
    return Path("clusters")


def test_a_directory_is_read_whole_and_places_are_its_own(clusters: Path) -> None:
    result = run("-f", clusters)
    assert [each.name for each in targets(result)] == ["apps", "web"]
    assert "  # set: path from Kustomization/flux-system/apps spec.path (clusters/apps.yaml:" in result.stdout
    assert f"# left alone, as other manifests: 1 ConfigMap, 1 {TEMPLATES}, 2 without a kind\n" in result.stdout
    assert result.stderr == "anneal import: 2 targets from 3 objects; next: anneal check\n"


def test_a_place_is_the_line_of_the_field(clusters: Path) -> None:
    text = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: x\n  namespace: flux-system\nspec:\n"
    Path("one.yaml").write_text(
        text + "  prune: true\n  sourceRef:\n    kind: GitRepository\n    name: shop\n  postBuild:\n    substitute:\n"
    )
    assert "Kustomization/flux-system/x spec.sourceRef.name (one.yaml:10): Git" in run("-f", "one.yaml", "-f", clusters / "sources").stdout


def test_several_files_and_standard_input_are_one_input(clusters: Path) -> None:
    piped = yaml.safe_dump(git())
    assert len(targets(run("-f", clusters / "apps.yaml", "-f", "-", stdin=piped))) == 2
    assert len(targets(run("-f", clusters / "apps.yaml", "-f", "-", stdin=json.dumps(git())))) == 2


def test_what_is_missing_is_named_and_the_rest_is_printed(clusters: Path) -> None:
    result = run("-f", clusters / "apps.yaml", code=1)
    assert [each.name for each in targets(result)] == ["web"]
    assert "clusters/apps.yaml:3: Kustomization/flux-system/apps: refers to GitRepository/flux-system/shop, which isn't" in result.stderr
    assert "kubectl get GitRepository.source.toolkit.fluxcd.io/shop -n flux-system -o yaml" in result.stderr


def test_what_has_no_counterpart_is_no_failure(clusters: Path) -> None:
    written(Path("one.yaml"), git(), ks(force=True, namePrefix="x-"))
    result = run("-f", "one.yaml")
    assert "; 2 fields not taken over; 1 target suspended; next" in result.stderr


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        (
            [{"apiVersion": "v1", "kind": "ConfigMap"}],
            "the input: has no object that import knows; there are: 1 ConfigMap\n    known: Alert.notification.",
        ),
        ([], "is empty"),
        ([git()], "GitRepository/flux-system/shop: no resource of the input takes anything from it"),
        ([repo(), release()], "has a chart that isn't in git"),
    ],
)
def test_an_input_without_a_target_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, documents: list[Any], says: str) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"---\n{yaml.safe_dump(each)}" for each in documents)
    assert says in run("-f", "-", stdin=text, code=1).stderr


def test_a_mistake_in_a_file_is_named_and_the_rest_is_printed(clusters: Path) -> None:
    (clusters / "broken.yaml").write_text("a: [\n")
    result = run("-f", clusters, code=1)
    assert len(targets(result)) == 2
    assert "clusters/broken.yaml:2: YAML: " in result.stderr


def test_aliases_that_stand_for_millions_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.yaml"
    bomb.write_text("a: &a0 x\n" + "".join(f"b{n}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)))
    assert "stands for more than 1,000,000 values" in run("-f", bomb, code=1).stderr


@each_row(
    ("flags", "says"),
    [
        ([], "name files by -f, or the cluster by --from-cluster"),
        (["-f", "-", "--from-cluster"], "name files by -f, or the cluster by --from-cluster"),
        (["-f", "-", "-n", "web"], "-n goes with --from-cluster"),
        (["-f", "https://example.com/a.yaml"], "a URL isn't fetched"),
    ],
)
def test_flags_that_dont_go_together(flags: list[str], says: str) -> None:
    assert says in run(*flags, code=64, stdin="a: 1\n").stderr


def test_json_says_the_same(clusters: Path) -> None:
    found = json.loads(run("-f", clusters, "-o", "json").stdout)
    assert [each["name"] for each in found["targets"]] == ["apps", "web"]
    assert (found["problems"], found["leftAlone"]) == ([], {"ConfigMap": 1, "without a kind": 2, TEMPLATES: 1})
    missing = json.loads(run("-f", clusters / "apps.yaml", "-o", "json", code=1).stdout)
    assert "kubectl get" in missing["problems"][0]["fix"]


def test_values_that_stand_as_text_are_read(clusters: Path) -> None:
    written(Path("one.yaml"), app({"helm": {"values": "a:\n  b: 1\n"}}))
    assert json.loads(targets(run("-f", "one.yaml"))[0].renderer.values) == {"a": {"b": 1}}


def test_a_chart_from_elsewhere_takes_the_repository_that_is_named_or_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("one.yaml"), repo(), release())
    assert targets(run("-f", "one.yaml", "--repository", "https://git.example.com/a/b"))[0].repository.url == "https://git.example.com/a/b"
    for command in (["init", "-q"], ["remote", "add", "origin", "git@git.example.com:a/c.git"]):
        subprocess.run(["git", *command], check=True)
    result = run("-f", "one.yaml")
    assert targets(result)[0].repository.url == "ssh://git@git.example.com/a/c.git"
    assert "  # set: repository from HelmRelease/flux-system/web (one.yaml:10): that of the checkout" in result.stdout
    written(Path("one.yaml"), git(), repo(), release())
    assert targets(run("-f", "one.yaml"))[0].repository.url == GIT_URL
