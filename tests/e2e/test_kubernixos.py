"""Kubernixos' own words against a real control plane of their own, for they look through all of it: by the document's wrapper, by nix.

What may be deleted of a cluster is `test_kubernixos_leftovers`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.cli.group import USAGE
from handler.cli.kubernixos_flags import NAME, NAMESPACE
from handler.model.names import KUBERNIXOS, PART_OF, state_name
from infra.controlplane import controlplane as controlplanes
from infra.renderers import nix
from tests.e2e.documents import Document, config_map, deployment, namespace, service
from tests.kubectl import Kubectl
from tests.kubernixos import DEVELOPMENT, EXAMPLE, SEED, WRAPPER, Hostgroups, by_original, words
from tests.packing import SESSION
from tests.terminal import typed

OLD = "0a1b2c3d"
NEW = config_map("default", "new")
QUESTION = "You are about to delete {} objects, please confirm with 'yes' or 'no': "


@pytest.fixture(scope="module")
def cluster() -> Iterator[Kubectl]:
    """A cluster that nothing else works on meanwhile."""
    place = Path(tempfile.mkdtemp(prefix="spare-", dir=os.environ[SESSION]))
    yield Kubectl(controlplanes.binaries() / "kubectl", controlplanes.up(place))
    controlplanes.down(place)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may read: of root's, nix is another one."""
    made = Path(tempfile.mkdtemp(prefix="hostgroups-", dir=os.environ[SESSION]))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def groups(place: Path) -> Hostgroups:
    """Hostgroups, and a kubeconfig that leads nowhere."""
    return Hostgroups(place / "repository", place / "nowhere", nix.binaries())


@pytest.fixture
def deployed(groups: Hostgroups, cluster: Kubectl) -> Iterator[Hostgroups]:
    """The same with a cluster; what is labelled there goes with the test."""
    groups.kubeconfig = cluster.kubeconfig
    yield groups
    for kind in ("configmaps", "services", "deployments.apps"):
        cluster.run("delete", kind, "-A", "-l", KUBERNIXOS, "--wait=false")
    cluster.run("delete", "namespaces", "-l", KUBERNIXOS, "--timeout=100s")
    cluster.run("delete", "configmaps,leases", "-n", NAMESPACE, "-l", "app.kubernetes.io/managed-by=anneal")


def marked(document: Document, checksum: str = OLD) -> Document:
    return {**document, "metadata": {**document["metadata"], "labels": {KUBERNIXOS: checksum}}}


def live(cluster: Kubectl) -> dict[str, str]:
    """Return every labelled object with its version."""
    items = cluster("get", "namespaces,configmaps,services,deployments", "-A", "-l", KUBERNIXOS)["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in items}


def leave(cluster: Kubectl, *documents: Document) -> None:
    by_original(cluster, json.dumps({"apiVersion": "v1", "kind": "List", "items": [marked(each) for each in documents]}))


# --- the document
@pytest.mark.skipif(not SEED.is_file(), reason=f"{SEED} is not beside this checkout")
def test_the_fixtures_are_the_documents_own() -> None:
    document = words(SEED.read_text())
    assert words(WRAPPER) in document
    assert words(EXAMPLE) in document


def test_the_documents_wrapper_names_a_hostgroup_that_isnt_there(groups: Hostgroups) -> None:
    done = groups.ran("hostgroups/absent.nix", "dump", code=1)
    assert (done.stdout, done.stderr) == ("", "Hostgroup hostgroups/absent.nix does not exist!\n")


def test_the_documents_module_is_dumped_without_a_cluster(groups: Hostgroups) -> None:
    printed = groups.run(groups.declare("development", module=EXAMPLE), "dump")
    assert printed.startswith('{\n\t"apiVersion": "v1",\n\t"items": [\n\t\t{\n')
    blob = json.loads(printed)
    (item,) = blob.pop("items")
    assert blob == {"apiVersion": "v1", "kind": "List"}
    checksum = item["metadata"]["labels"].pop(KUBERNIXOS)
    assert item == DEVELOPMENT
    assert (len(checksum), set(checksum) <= set("0123456789abcdef")) == (62, True)


def test_a_dump_is_ready_for_kubectl(deployed: Hostgroups, cluster: Kubectl) -> None:
    group = deployed.declare("all", config_map("default", "dumped"), DEVELOPMENT)
    by_original(cluster, deployed.run(group, "dump"))
    assert set(live(cluster)) == {"ConfigMap/dumped", "Namespace/development"}
    assert deployed.run(group, "apply").splitlines()[-1].startswith("kubernixos: applied")
    assert deployed.run(group, "prune", "--yes") == "", "what the original deployed of the same closure is in it"
    assert set(live(cluster)) == {"ConfigMap/dumped", "Namespace/development"}


def test_a_hostgroup_is_found_by_any_path(groups: Hostgroups, place: Path) -> None:
    group = groups.declare("all", DEVELOPMENT)
    wanted = groups.run(group, "dump")
    (place / "elsewhere").mkdir()
    (place / "link").symlink_to(groups.directory)
    assert groups.run(str(groups.directory / group), "dump") == wanted
    repository, groups.directory = groups.directory, place / "elsewhere"
    assert groups.run(f"{repository}/{group}", "dump") == wanted
    assert groups.run(f"{place}/link/{group}", "dump") == wanted
    groups.directory = repository / "hostgroups"
    assert groups.run("./all.nix", "dump") == groups.run("../hostgroups/all.nix", "dump") == wanted


def test_nixpkgs_may_be_an_entry_of_nix_path(groups: Hostgroups, place: Path) -> None:
    groups.declare("all", DEVELOPMENT)
    shutil.move(groups.directory / "nixpkgs", place / "nixpkgs")
    command = [str(place / "upstream/bin/kubernixos"), "dump"]
    environ = {**groups.environment, "MODULES": "[ ./hostgroups/all-module.nix ]"}
    missing, found = (
        subprocess.run(command, cwd=groups.directory, env={**environ, **more}, capture_output=True, text=True, check=False, timeout=120)
        for more in ({}, {"NIX_PATH": f"nixpkgs={place}/nixpkgs"})
    )
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "    keep it in the repository, or name where it lies: export NIX_PATH=" in missing.stderr
    assert json.loads(found.stdout)["items"][0]["metadata"]["name"] == "development", found.stderr


@pytest.mark.parametrize(("modules", "packages", "at"), [("[ absent ]", "{ }", "MODULES"), ("[ ]", "absent", "PACKAGES")])
def test_a_mistake_in_a_variable_is_placed_there(modules: str, packages: str, at: str, groups: Hostgroups, place: Path) -> None:
    environ = {**groups.environment, "MODULES": modules, "PACKAGES": packages}
    command = [str(place / "upstream/bin/kubernixos"), "dump"]
    done = subprocess.run(command, cwd=groups.directory, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr.startswith(f'Error occurred during stage "eval": {at}:1: '), done.stderr


# --- without a word
def test_without_a_word_all_is_checked_nothing_printed_and_nothing_changed(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    before = live(cluster)
    done = deployed.ran(deployed.declare("all", config_map("default", "new")))
    assert (done.stdout, done.stderr) == ("", "")
    assert live(cluster) == before
    assert not cluster.has("configmap", state_name(NAME), NAMESPACE)


@pytest.mark.parametrize("line", [(), ("dump",), ("apply",), ("prune", "--yes")], ids=str)
def test_what_nix_refuses_ends_the_stage_eval(line: tuple[str, ...], deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    done = deployed.ran(deployed.declare("all", module="{ kubernixos.manifests = [ absent ]; }"), *line, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith('Error occurred during stage "eval": hostgroups/all-module.nix:1'), done.stderr
    assert "undefined variable 'absent'" in done.stderr
    assert set(live(cluster)) == {"ConfigMap/left"}


def test_what_the_api_server_refuses_ends_the_stage_validate(deployed: Hostgroups) -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Absent", "metadata": {"name": "wrong"}}
    for wrong, told in ((service("default", "wrong", port=0), "Service/default/wrong: "), (unknown, "doesn't serve example.com/v1 Absent")):
        done = deployed.ran(deployed.declare("all", wrong), code=1)
        assert 'Error occurred during stage "validate": ' in done.stderr
        assert told in done.stderr


def test_a_trace_is_shown_on_demand(groups: Hostgroups) -> None:
    module = '{ kubernixos.manifests = [ (builtins.addErrorContext "while here" (throw "no")) ]; }'
    group = groups.declare("all", module=module)
    plain, traced = (groups.ran(group, "dump", *more, code=1).stderr for more in ((), ("--show-trace",)))
    assert len(traced) > len(plain), (plain, traced)


def test_a_cluster_that_isnt_there_ends_a_stage_of_its_own(groups: Hostgroups) -> None:
    assert 'Error occurred during stage "kube-config"' in groups.ran(groups.declare("all", NEW), "apply", code=1).stderr


# --- apply
def test_an_apply_doesnt_prune_and_lists_what_would_go(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"), config_map("default", "kept"))
    printed = deployed.run(deployed.declare("all", config_map("default", "kept"), NEW), "apply")
    assert printed.splitlines()[-1] == f"Pruning: /api/v1/namespaces/default/configmaps/left, checksum: {OLD} (dry-run)"
    assert set(live(cluster)) == {"ConfigMap/left", "ConfigMap/kept", "ConfigMap/new"}


def test_the_documents_dry_run_changes_nothing(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"), config_map("default", "kept"))
    before = live(cluster)
    group = deployed.declare("all", config_map("default", "kept", {"a": "b"}), NEW)
    for line in (("apply", "--dry-run=true", "-v=6"), ("apply", "prune", "--", "--dry-run=server"), ("prune", "--dry-run")):
        printed = deployed.run(group, *line)
        assert "configmaps/left" in printed.splitlines()[-1] or "kept: " in printed.splitlines()[-1]
        assert live(cluster) == before, line


def test_everything_is_shown_at_a_level_of_the_documents_flag(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, service("default", "web"))
    group = deployed.declare("all", config_map("default", "kept"))
    quiet, told = deployed.run(group, "apply"), deployed.run(group, "apply", "-v=6")
    assert "endpoints/web: kubectl apply hasn't put the label on it" in told
    assert "endpoints/web" not in quiet


def test_no_prune_follows_an_apply_that_failed(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    group = deployed.declare("all", deployment("absent", "web"))
    done = deployed.ran(group, "apply", "prune", "--yes", code=1)
    assert 'Error occurred during stage "apply": ' in done.stderr
    assert "Pruning" not in done.stdout
    assert set(live(cluster)) == {"ConfigMap/left"}


# --- prune
def test_words_combine_in_upstreams_order(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"), namespace("gone"))
    printed = deployed.run(deployed.declare("all", NEW), "prune", "dump", "apply", "--yes")
    blob, _, rest = printed.partition("\n}\n")
    assert json.loads(f"{blob}\n}}")["items"][0]["metadata"]["name"] == "new"
    lines = rest.splitlines()
    assert lines[0].startswith("ConfigMap/default/new created")
    assert sorted(line for line in lines if line.startswith("Pruning: ")) == sorted(
        f"Pruning: /api/v1/{path}, checksum: {OLD}{more}"
        for path in ("namespaces/default/configmaps/left", "namespaces/gone")
        for more in ("", " (dry-run)")
    )
    assert set(live(cluster)) == {"ConfigMap/new"}


def test_a_prune_that_can_ask_nobody_does_nothing(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    before = live(cluster)
    done = deployed.ran(deployed.declare("all", NEW), "apply", "prune", code=USAGE)
    assert "it needs --yes" in done.stderr
    assert live(cluster) == before


@pytest.mark.parametrize(
    ("answers", "goes"),
    [(("yes",), True), (("YES",), True), (("no",), False), (("",), False), (("y", "yes"), True), (("y", "no"), False)],
    ids=str,
)
def test_a_prune_asks_in_upstreams_words(answers: tuple[str, ...], goes: bool, deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"), NEW)
    before = live(cluster)
    asked = [QUESTION.format(1), "Please type yes or no and then press enter: "]
    command = [str(deployed.wrapper), deployed.declare("all", NEW), "prune"]
    ended, shown = typed(command, list(zip(asked, answers, strict=False)), environ=deployed.environment, cwd=deployed.directory)
    assert ended == (0 if goes else 1), shown
    assert live(cluster) == {name: version for name, version in before.items() if not (goes and name == "ConfigMap/left")}, (
        "nor is anything applied"
    )


def test_two_closures_of_one_cluster_have_names_and_leave_each_other_alone(deployed: Hostgroups, cluster: Kubectl) -> None:
    a, b = (deployed.declare(name, config_map("default", f"of-{name}"), config_map("default", f"more-{name}")) for name in ("a", "b"))
    deployed.run(a, "apply", "prune", "--yes", "--name=a")
    assert "Pruning" not in deployed.run(b, "apply", "prune", "--yes", "--name=b")
    deployed.declare("a", config_map("default", "of-a"))
    printed = deployed.run(a, "apply", "prune", "--yes", "--name=a")
    assert [line for line in printed.splitlines() if "Pruning" in line and "more-a" not in line] == []
    assert set(live(cluster)) == {"ConfigMap/of-a", "ConfigMap/of-b", "ConfigMap/more-b"}
    labels = [cluster("get", "configmap", name, "-n", "default")["metadata"]["labels"] for name in ("of-a", "of-b")]
    assert labels[0][KUBERNIXOS] != labels[1][KUBERNIXOS]
    assert labels[0][PART_OF] != labels[1][PART_OF]


def test_what_another_closure_declares_is_refused(deployed: Hostgroups) -> None:
    a, b = (deployed.declare(name, config_map("default", "both")) for name in ("a", "b"))
    deployed.run(a, "apply", "--name=a")
    done = deployed.ran(b, "apply", "--name=b", code=1)
    assert 'Error occurred during stage "apply": ' in done.stderr
    assert "belongs to target a" in done.stderr


def test_a_closure_of_another_cluster_prunes_nothing(deployed: Hostgroups, cluster: Kubectl) -> None:
    """Of another environment's closure all lacks that lives here: upstream would delete it."""
    leave(cluster, config_map("default", "left"))
    group = deployed.declare("all", config_map("default", "elsewhere"))
    done = deployed.ran(group, "prune", "--yes", code=1)
    assert "nothing that it declares lives here, so this may be another cluster" in done.stderr
    assert set(live(cluster)) == {"ConfigMap/left"}
    assert "configmaps/left" in deployed.run(group, "apply", "prune", "--dry-run").splitlines()[-1]


def test_an_empty_closure_prunes_nothing(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    for line in (("apply",), ("prune", "--yes"), ()):
        done = deployed.ran(deployed.declare("all"), *line, code=1)
        assert "declares no object" in done.stderr
        assert "name it by --target" in done.stderr
    assert set(live(cluster)) == {"ConfigMap/left"}


def test_a_dump_that_nobody_reads_to_its_end_ends_the_command(deployed: Hostgroups, cluster: Kubectl) -> None:
    """Also where a write isn't buffered, as in many images of Python: there the system call ends early, and says nothing of it."""
    group = deployed.declare("all", *(config_map("default", f"long-{number}", {"a": "b" * 50_000}) for number in range(10)))
    command = [str(deployed.wrapper), group, "dump", "apply"]
    environ = {**deployed.environment, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=deployed.directory, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as started:
        assert started.stdout
        started.stdout.read(1)
        started.stdout.close()
    assert started.returncode == 1
    assert live(cluster) == {}


def test_a_name_is_no_flag(deployed: Hostgroups, cluster: Kubectl) -> None:
    done = deployed.ran(deployed.declare("all", NEW), "apply", "--name", "--dry-run", code=USAGE)
    assert "--name '--dry-run=client': expected a DNS label" in done.stderr
    assert live(cluster) == {}


# --- the server that a closure names
def test_another_server_than_the_closures_is_refused_before_anything_is_written(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    pinned: dict[str, Any] = {"server": "https://k8s.example.com:6443"}
    group = deployed.declare("all", config_map("default", "new"), **pinned)
    for line in ((), ("apply",), ("prune", "--yes")):
        done = deployed.ran(group, *line, code=1)
        assert 'Error occurred during stage "kube-config": ' in done.stderr
        assert "config.kubernixos.server pins https://k8s.example.com:6443" in done.stderr
        assert "points to https://127.0.0.1:" in done.stderr
    assert set(live(cluster)) == {"ConfigMap/left"}
    assert not cluster.has("configmap", state_name(NAME), NAMESPACE)
    assert json.loads(deployed.run(group, "dump"))["kind"] == "List", "no cluster is asked"


def test_the_server_that_a_closure_names_is_deployed_to(deployed: Hostgroups, cluster: Kubectl) -> None:
    server = cluster("config", "view", "--minify")["clusters"][0]["cluster"]["server"]
    deployed.run(deployed.declare("all", config_map("default", "new"), server=f"{server}/"), "apply")
    assert set(live(cluster)) == {"ConfigMap/new"}


# --- the record
def test_status_shows_what_was_deployed(deployed: Hostgroups) -> None:
    deployed.run(deployed.declare("all", config_map("default", "new")), "apply")
    assert f"{NAME} " in deployed.anneal("status")
    assert "applied" in deployed.anneal("history", NAME)


def test_status_shows_a_first_run_that_failed(deployed: Hostgroups) -> None:
    deployed.ran(deployed.declare("all", service("default", "wrong", port=0)), "apply", code=1)
    assert f"{NAME} " in deployed.anneal("status")
