"""`-f`: directories, files and standard input, the same in every command that takes them; judged by kubectl."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl

POLICY = {"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "front"}}}]}]}


def flags(shop: Shop, *given: str | Path, name: str = "local") -> tuple[str, ...]:
    named = [word for each in given for word in ("-f", str(each))]
    return (*named, "--name", name, "-n", shop.namespace, "--state-namespace", shop.namespace)


def policy(**spec: object) -> str:
    return document("NetworkPolicy", "web", "networking.k8s.io/v1", spec=spec)


@pytest.fixture
def files(shop: Shop, tmp_path: Path) -> Path:
    """A directory outside of any repository, with two objects; no configuration is there."""
    shop.cli.config.unlink()
    made = tmp_path / "plain"
    made.mkdir()
    (made / "a.yaml").write_text(document("ConfigMap", "a", data={"v": "1"}))
    (made / "b.txt").write_text(document("ConfigMap", "b"))
    (made / "np.yaml").write_text(policy(**POLICY))
    return made


def test_every_command_takes_a_directory_with_the_same_flags(shop: Shop, files: Path, kubectl: Kubectl) -> None:
    same = flags(shop, files)
    assert [change["object"] for stage in shop.cli.json("plan", *same)["stages"] for change in stage] == [
        f"NetworkPolicy/{shop.namespace}/web",
        f"ConfigMap/{shop.namespace}/a",
    ]
    assert "name: a" in shop.cli("render", *same).stdout
    assert shop.cli("check", *same).stdout.splitlines()[-1].split() == ["plan", "ok", "2", "to", "create"]
    shop.cli("apply", *same)
    assert shop.cli("plan", *same, "--exit-code").stdout.endswith("2 unchanged\n")
    assert shop.cli("status", *same).stdout.startswith("local: applied")
    assert shop.cli.json("history", *same)["runs"][0]["outcome"] == "applied"
    (files / "a.yaml").unlink()
    assert "1 to prune" not in shop.cli("plan", *same).stdout, "apply -f wouldn't, either"
    assert f"- prune ConfigMap/{shop.namespace}/a" in shop.cli("plan", *same, "--prune").stdout
    assert f"ConfigMap/{shop.namespace}/a pruned" in shop.cli("prune", *same).stdout
    assert not kubectl.has("cm", "a", shop.namespace)


def test_status_and_history_of_files_need_the_name_of_the_record_alone(shop: Shop, files: Path) -> None:
    shop.cli("apply", *flags(shop, files))
    record = ("--name", "local", "--state-namespace", shop.namespace)
    assert shop.cli("status", *record).stdout.startswith("local: applied")
    assert len(shop.cli.json("history", *record)["runs"]) == 1


def test_files_are_named_one_by_one_whatever_they_end_in(shop: Shop, files: Path, kubectl: Kubectl) -> None:
    shop.cli("apply", *flags(shop, files / "b.txt", files / "a.yaml"))
    assert {item["metadata"]["name"] for item in kubectl("get", "cm", "-n", shop.namespace)["items"]} >= {"a", "b"}
    assert kubectl("get", "networkpolicy", "-n", shop.namespace)["items"] == []
    told = shop.cli("apply", *flags(shop, files / "c.yaml"), code=1)
    assert "c.yaml: can't be read: No such file or directory" in told.stderr


def test_standard_input_is_applied_as_a_file_is(shop: Shop, files: Path, kubectl: Kubectl) -> None:
    piped = flags(shop, "-")
    both = "---\n".join((files / name).read_text() + "\n" for name in ("a.yaml", "b.txt"))
    assert "2 created" in shop.cli("apply", *piped, "-y", stdin=both).stdout
    assert kubectl("get", "cm", "b", "-n", shop.namespace)
    assert "2 unchanged" in shop.cli("apply", *piped, "-y", stdin=both).stdout
    as_json = "".join((files / name).read_text() for name in ("a.yaml", "b.txt"))  # as `jq` and `kubectl get -o json` print them
    assert "2 unchanged" in shop.cli("apply", *piped, "-y", stdin=as_json).stdout
    bad = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: 1}\n"
    assert "standard input:2: " in shop.cli("apply", *piped, "-y", stdin=bad, code=1).stderr
    assert "standard input:2: file: isn't UTF-8" in shop.cli("plan", *piped, stdin=b"# a\n\xff\n", code=1).stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "standard input: is empty, so nothing was changed\n    see what the command before the pipe says"),
        (" \n\n", "standard input: is empty"),
        ("---\n# nothing\n", "the render declares no object (2 live members would go)\n    name files that declare something"),
        ("#" * 10_000_001, "standard input: is larger than 10,000,000 bytes"),
    ],
)
def test_a_pipe_that_brings_nothing_prunes_nothing(shop: Shop, files: Path, kubectl: Kubectl, given: str, told: str) -> None:
    shop.cli("apply", *flags(shop, files))
    assert told in shop.cli("apply", *flags(shop, "-"), "--prune", "-y", stdin=given, code=1).stderr
    assert kubectl("get", "cm", "a", "-n", shop.namespace)


def test_standard_input_without_a_terminal_needs_the_yes_flag_and_names_the_command(shop: Shop, files: Path) -> None:
    told = shop.cli("apply", *flags(shop, "-"), "--prune", stdin=(files / "a.yaml").read_text(), code=64).stderr
    command = shlex.join(("anneal", "apply", *flags(shop, "-"), "-y", "--prune"))
    assert f"there is no terminal to ask on, so it needs -y: … | {command}" in " ".join(told.split())


def test_a_url_isnt_fetched(shop: Shop) -> None:
    told = " ".join(shop.cli("apply", "-f", "https://example.com/x.yaml", "--name", "a", "-n", "b", code=64).stderr.split())
    assert "a URL isn't fetched; pipe it: curl -fsSL https://example.com/x.yaml | anneal apply -f -" in told


def test_missing_whitelist_entries_are_one_command_at_the_end_that_works(shop: Shop, files: Path, kubectl: Kubectl) -> None:
    other = f"{shop.namespace}-b"
    (files / "ns.yaml").write_text(document("Namespace", other))
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": other}}
    there = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": other}} for name in "cde"]
    (files / "there.json").write_text("\n".join(map(json.dumps, (role, *there))))
    told = shop.cli("apply", *flags(shop, files), code=1).stderr.splitlines()
    assert told[:-1] == [
        f"ns.yaml:1: Namespace/{other} and 3 more: namespace {other} is not in the target's whitelist",
        f"there.json:1: ClusterRole/{other}: ClusterRole.rbac.authorization.k8s.io is cluster-scoped and not allowed here",
        "target local: 5 objects need what it doesn't allow",
    ]
    command = shlex.split(told[-1])
    try:
        assert "created" in shop.cli(*command[1:]).stdout
        assert len(kubectl("get", "cm", "-n", other, "-l", "applyset.kubernetes.io/part-of")["items"]) == 3
    finally:
        kubectl.run("delete", "clusterrole", other)
        kubectl.run("delete", "namespace", other, "--wait=false")


def test_a_namespace_that_isnt_there_is_told_once_with_the_command_that_makes_it(shop: Shop, files: Path, kubectl: Kubectl) -> None:
    absent = f"{shop.namespace}-c"
    same = ("-f", str(files), "--name", "local", "-n", absent, "--state-namespace", shop.namespace)
    told = shop.cli("apply", *same, code=1).stderr.splitlines()
    assert f'NetworkPolicy/{absent}/web and 1 more: “namespaces "{absent}" not found”' in told[0]
    command = told[1].strip().removeprefix("create it: kubectl ").partition(";")[0]
    kubectl.run(*shlex.split(command))
    try:
        assert "2 created" in shop.cli("apply", *same).stdout
    finally:
        kubectl.run("delete", "namespace", absent, "--wait=false")


def test_apply_tells_which_fields_it_changes_as_plan_does(shop: Shop, files: Path, kubectl: Kubectl) -> None:
    same = flags(shop, files)
    shop.cli("apply", *same)
    (files / "np.yaml").write_text(policy(podSelector={}))  # from now on nothing is let in
    planned = [line for line in shop.cli("plan", *same).stdout.splitlines() if line.startswith("    ")]
    assert len(planned) == 1
    assert planned[0].startswith('    - spec.ingress: [{"from"')
    lines = shop.cli("apply", *same).stdout.splitlines()
    assert lines[:2] == [f"NetworkPolicy/{shop.namespace}/web configured", planned[0]]
    assert "ingress" not in kubectl("get", "networkpolicy", "web", "-n", shop.namespace)["spec"]


def test_held_deletions_of_files_are_approved_by_the_command_that_plan_and_prune_print(shop: Shop, files: Path, kubectl: Kubectl) -> None:
    """A plan, a pruning's plan and a pruning hold the same; what they print is typed as it stands."""
    for number in range(12):
        (files / f"going-{number}.yaml").write_text(document("ConfigMap", f"going-{number}"))
    same = flags(shop, files)
    shop.cli("apply", *same)
    for number in range(12):
        (files / f"going-{number}.yaml").unlink()
    told = {
        shop.cli(*arguments, *same, code=code).stdout.rpartition("allow exactly that: ")[2].splitlines()[0]
        for arguments, code in ((("plan", "--prune"), 0), (("prune", "--dry-run"), 0), (("prune",), 3))
    }
    assert len(told) == 1, told
    (command,) = told
    shop.cli(*shlex.split(command)[1:])
    assert not kubectl.has("cm", "going-3", shop.namespace)
