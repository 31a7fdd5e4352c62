"""Flags as Go writes them, what of Locutus' this version refuses by name, and what its front is without a configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handler.cli.commands.deploy import locutus
from handler.cli.go_flags import go_duration, go_int, spelled
from handler.cli.group import USAGE, anneal
from handler.cli.local_source import Directory, Rereading
from handler.config.git_settings import Revision
from handler.model.errors import RefNotFound
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {password: canary-77}\n"


def ran(*arguments: str, code: int = 0) -> Result:
    found = CliRunner(env={"KUBECONFIG": "/nonexistent", "HOME": "/nonexistent"}).invoke(anneal, ["locutus", *arguments])
    assert found.exit_code == code, found.output
    return found


def printed(directory: Path, *more: str) -> Any:
    return json.loads(ran("--renderer.file.dir", str(directory), "--render-only", *more).stdout)


@each_row(
    ("given", "read"),
    [
        ("--renderer=file", "--renderer file"),
        ("-renderer=file", "--renderer file"),
        ("-renderer file", "--renderer file"),
        ("--master --renderer", "--master --renderer"),
        ("-render-only", "--render-only"),
        ("--render-only=T", "--render-only"),
        ("--render-only=FALSE --trigger interval", "--trigger interval"),
        ("-config-file=a=b", "--config-file a=b"),
        ("-output=json -o text -vv", "--output json -o text -vv"),
        ("-kubeconfig", "--kubeconfig"),
        ("--unknown=1 -unknown=2 odd", "--unknown=1 --unknown=2 odd"),
        ("-- -renderer=x", "-- -renderer=x"),
    ],
)
def test_a_go_command_line_is_read(given: str, read: str) -> None:
    assert list(spelled(locutus.params, given.split())) == read.split()


@each_row(
    ("text", "found"),
    [
        ("1m0s", 60.0),
        ("1h2m3.5s", 3723.5),
        ("1500ms", 1.5),
        (".5m", 30.0),
        ("2us", 2e-6),
        ("0", 0.0),
        ("+1m", 60.0),
        ("1m 0s", None),
        ("60", None),
        ("", None),
        ("-1s", None),
    ],
)
def test_a_go_duration_is_read(text: str, found: float | None) -> None:
    assert go_duration(text) == (found if found is None else pytest.approx(found))


@each_row(("text", "found"), [("5", 5), ("-1", -1), ("0x10", 16), ("017", 15), ("1_000", 1000), ("0", 0), ("0_7", 7)])
def test_a_go_number_is_read(text: str, found: int) -> None:
    assert go_int(text) == found


@each_row("text", [" 5", "5 ", "0x8000000000000000"])
def test_what_is_no_go_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^\s*[0-9]"):
        go_int(text)


@each_row(
    ("arguments", "told"),
    [
        (("--one-off", "--renderer.jsonnet.entrypoint=a"), "--renderer.jsonnet.entrypoint goes with --renderer=jsonnet"),
        (("--one-off", "--renderer=jsonnet", "--renderer.file.dir=a"), "--renderer.file.dir goes with --renderer=file"),
        (("--one-off", "--renderer=jsonnet", "--renderer.file.rollout=a"), "--renderer.file.rollout goes with --renderer=file"),
        (("--one-off", "--renderer=jsonnet"), "--renderer.jsonnet.entrypoint: expected a file, found none at jsonnet/main.jsonnet"),
        (("--trigger=webhook",), "--trigger=webhook isn't known; this one has oneoff, interval, resource"),
        (("--renderer=helm",), "--renderer=helm isn't known"),
        (("--renderer=resource",), "--renderer=resource isn't known"),
        (("-renderer.yaml.dir=a",), "No such option '--renderer.yaml.dir'"),
        (("--renderer.file.dir=.", "--renderer.file.rollout", ""), "--renderer.file.rollout': is empty"),
    ],
)
def test_locutus_flags_that_arent_taken_are_refused_by_name(arguments: tuple[str, ...], told: str) -> None:
    assert told in ran(*arguments, code=USAGE).stderr


def test_a_rollout_may_lie_in_the_directory_beside_it_or_anywhere(tmp_path: Path) -> None:
    rollout = "apiVersion: workflow.kubernetes.io/v1alpha1\nkind: Rollout\nmetadata: {name: one}\nspec: {groups: []}\n"
    manifests = tmp_path / "manifests"
    (manifests / "below").mkdir(parents=True)
    (manifests / "below" / "one.yaml").write_text(CONFIG_MAP)
    places = [manifests / "rollout.yaml", tmp_path / "rollout.yaml", tmp_path / "far" / "off" / "manifests"]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(rollout)
        found = printed(manifests, "--renderer.file.rollout", str(place))
        assert (list(found["objects"]), found["rollout"]["metadata"]["name"]) == (["below/one.yaml"], "one"), place
        place.unlink()
    assert printed(manifests)["rollout"] is None


def test_secrets_in_locutus_output_are_masked(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(SECRET)
    assert "canary-77" not in json.dumps(printed(tmp_path))


def test_values_that_a_check_compares_with_a_secret_are_masked(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(SECRET.replace("name: key", "name: healthy"))
    (tmp_path / "rollout.yaml").write_text(
        "apiVersion: workflow.kubernetes.io/v1alpha1\nkind: Rollout\nmetadata: {name: one}\n"
        "spec: {groups: [{name: canary-77, steps: [{object: secret.yaml, action: CreateOrUpdate, success: [{fieldComparisons: ["
        "{path: '{.data.password}', value: {static: Y2FuYXJ5LTc3}}, {path: '{.metadata.name}', value: {static: healthy}}]}]}]}]}\n"
    )
    (group,) = printed(tmp_path, "--renderer.file.rollout", str(tmp_path / "rollout.yaml"))["rollout"]["spec"]["groups"]
    (check,) = group["steps"][0]["success"]
    assert [each["value"]["static"] for each in check["fieldComparisons"]] == ["***", "healthy"]
    assert group["name"] == "canary-77"  # what a step or group is called may merely be the same word


def test_a_configuration_brings_its_target(tmp_path: Path) -> None:
    manifests, config = tmp_path / "manifests", tmp_path / "anneal.yaml"
    manifests.mkdir()
    for name in ("one.yaml", "two.yml"):
        (manifests / name).write_text(CONFIG_MAP.replace("one", name.replace(".", "-")))
    target = "- {name: shop, repository: {url: https://git.example.com/a/b}, namespaces: [shop], renderer: {include: ['*.yml']}}\n"
    header = "apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n"
    config.write_text(header + target)
    for flag in (f"--config-file={config}", f"--config={config}"):
        assert list(printed(manifests, flag)["objects"]) == ["two.yml"]
    config.write_text(header + target + target.replace("shop,", "other,", 1))
    assert (
        "expected one target, found 2" in ran(f"--renderer.file.dir={manifests}", "--one-off", f"--config-file={config}", code=USAGE).stderr
    )
    config.write_text('{"replicas": 3}')
    assert (
        "is no configuration of Anneal"
        in ran(f"--renderer.file.dir={manifests}", "--one-off", f"--config-file={config}", code=USAGE).stderr
    )


def test_a_directory_is_read_anew_at_each_look(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(CONFIG_MAP)
    source, main = Rereading(lambda: Directory(tmp_path)), Revision(branch="main")
    first = source.head(main).commit
    assert source.head(main).commit == first, "what is the same has the same name"
    (tmp_path / "two.yaml").write_text(CONFIG_MAP.replace("one", "two"))
    second = source.head(main).commit
    assert second != first
    assert [entry.path for entry in source.fetch(second).walk("")] == ["one.yaml", "two.yaml"]
    with pytest.raises(RefNotFound):
        source.fetch(first)
