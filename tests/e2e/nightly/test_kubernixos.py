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

import pytest

from handler.cli.kubernixos_flags import NAME, NAMESPACE
from handler.model.names import KUBERNIXOS, PART_OF, state_name
from infra.controlplane import controlplane as controlplanes
from infra.renderers import nix
from tests.e2e.documents import Document, config_map, deployment, namespace, service
from tests.kubectl import IN_TIME, Kubectl
from tests.kubernixos import DEVELOPMENT, EXAMPLE, SEED, WRAPPER, Hostgroups, by_original, words
from tests.packing import SESSION
from tests.terminal import typed

OLD = "0a1b2c3d"
NEW = config_map("default", "new")


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
    cluster.run("delete", "namespaces", "-l", KUBERNIXOS, IN_TIME)
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


def test_the_documents_module_is_dumped_without_a_cluster_from_any_path(groups: Hostgroups, place: Path) -> None:
    done = groups.ran("hostgroups/absent.nix", "dump", code=1)
    assert (done.stdout, done.stderr) == ("", "Hostgroup hostgroups/absent.nix does not exist!\n")
    printed = groups.run(groups.declare("development", module=EXAMPLE), "dump")
    assert printed.startswith('{\n\t"apiVersion": "v1",\n\t"items": [\n\t\t{\n')
    blob = json.loads(printed)
    (item,) = blob.pop("items")
    assert blob == {"apiVersion": "v1", "kind": "List"}
    checksum = item["metadata"]["labels"].pop(KUBERNIXOS)
    assert item == DEVELOPMENT
    assert (len(checksum), set(checksum) <= set("0123456789abcdef")) == (62, True)
    (place / "elsewhere").mkdir()
    (place / "link").symlink_to(groups.directory)
    groups.directory = place / "elsewhere"
    assert groups.run(f"{place}/link/hostgroups/development.nix", "dump") == printed


def test_a_dump_is_ready_for_kubectl(deployed: Hostgroups, cluster: Kubectl) -> None:
    group = deployed.declare("all", config_map("default", "dumped"), DEVELOPMENT)
    by_original(cluster, deployed.run(group, "dump"))
    assert set(live(cluster)) == {"ConfigMap/dumped", "Namespace/development"}
    assert deployed.run(group, "apply").splitlines()[-1].startswith("kubernixos: applied")
    assert deployed.run(group, "prune", "--yes") == "", "what the original deployed of the same closure is in it"
    assert set(live(cluster)) == {"ConfigMap/dumped", "Namespace/development"}


def test_nixpkgs_may_be_an_entry_of_nix_path(groups: Hostgroups, place: Path) -> None:
    groups.declare("all", DEVELOPMENT)
    shutil.move(groups.directory / "nixpkgs", place / "nixpkgs")
    modules = "[ ./hostgroups/all-module.nix ]"
    missing, found = (groups.program("dump", MODULES=modules, **more) for more in ({}, {"NIX_PATH": f"nixpkgs={place}/nixpkgs"}))
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "    keep it in the repository, or name where it lies: export NIX_PATH=" in missing.stderr
    assert json.loads(found.stdout)["items"][0]["metadata"]["name"] == "development", found.stderr


# --- stages
def test_what_is_wrong_ends_the_stage_that_it_is_of_and_changes_nothing(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    before = live(cluster)
    done = deployed.ran(deployed.declare("all", module="{ kubernixos.manifests = [ absent ]; }"), "prune", "--yes", code=1)
    assert done.stdout == ""
    assert done.stderr.startswith('Error occurred during stage "eval": hostgroups/all-module.nix:1'), done.stderr
    assert "undefined variable 'absent'" in done.stderr
    unknown = {"apiVersion": "example.com/v1", "kind": "Absent", "metadata": {"name": "wrong"}}
    for wrong, told in ((service("default", "wrong", port=0), "Service/default/wrong: "), (unknown, "doesn't serve example.com/v1 Absent")):
        done = deployed.ran(deployed.declare("all", wrong), code=1)
        assert 'Error occurred during stage "validate": ' in done.stderr
        assert told in done.stderr
    done = deployed.ran(deployed.declare("all"), "prune", "--yes", code=1)
    assert "declares no object" in done.stderr
    assert "name it by --target" in done.stderr
    group = deployed.declare("all", NEW, server="https://k8s.example.com:6443")
    done = deployed.ran(group, "apply", code=1)
    assert 'Error occurred during stage "kube-config": ' in done.stderr
    assert "config.kubernixos.server pins https://k8s.example.com:6443" in done.stderr
    assert "points to https://127.0.0.1:" in done.stderr
    assert json.loads(deployed.run(group, "dump"))["kind"] == "List", "no cluster is asked"
    done = deployed.ran(deployed.declare("all", NEW))
    assert (done.stdout, done.stderr) == ("", ""), "without a word all is checked"
    assert live(cluster) == before
    assert not cluster.has("configmap", state_name(NAME), NAMESPACE)
    deployed.kubeconfig = deployed.directory / "nowhere"
    assert 'Error occurred during stage "kube-config"' in deployed.ran(group, "apply", code=1).stderr


# --- apply
def test_an_apply_lists_what_would_go_and_a_dry_run_changes_nothing(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"), config_map("default", "kept"), service("default", "web"))
    before = live(cluster)
    server = cluster("config", "view", "--minify")["clusters"][0]["cluster"]["server"]
    group = deployed.declare("all", config_map("default", "kept", {"a": "b"}), NEW, service("default", "web"), server=f"{server}/")
    gone = f"Pruning: /api/v1/namespaces/default/configmaps/left, checksum: {OLD} (dry-run)"
    printed = deployed.run(group, "apply", "prune", "--", "--dry-run=server", "-v=6")
    assert gone in printed.splitlines()
    assert "endpoints/web: kubectl apply hasn't put the label on it" in printed
    assert live(cluster) == before
    printed = deployed.run(group, "apply")
    assert printed.splitlines()[-1] == gone
    assert "endpoints/web" not in printed
    assert set(live(cluster)) == {"ConfigMap/left", "ConfigMap/kept", "ConfigMap/new", "Service/web"}
    assert f"{NAME} " in deployed.anneal("status")
    assert "applied" in deployed.anneal("history", NAME)


def test_no_prune_follows_an_apply_that_failed(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"))
    group = deployed.declare("all", deployment("absent", "web"))
    done = deployed.ran(group, "apply", "prune", "--yes", code=1)
    assert 'Error occurred during stage "apply": ' in done.stderr
    assert "Pruning" not in done.stdout
    assert set(live(cluster)) == {"ConfigMap/left"}
    assert f"{NAME} " in deployed.anneal("status"), "its first run failed"


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


def test_a_prune_asks_in_upstreams_words(deployed: Hostgroups, cluster: Kubectl) -> None:
    leave(cluster, config_map("default", "left"), NEW)
    before = live(cluster)
    question = "You are about to delete 1 objects, please confirm with 'yes' or 'no': "
    command = [str(deployed.wrapper), deployed.declare("all", NEW), "prune"]
    for answer, code in (("no", 1), ("yes", 0)):
        ended, shown = typed(command, [(question, answer)], environ=deployed.environment, cwd=deployed.directory)
        assert ended == code, shown
        left = {name: version for name, version in before.items() if answer == "no" or name != "ConfigMap/left"}
        assert live(cluster) == left, "nor is anything applied"


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
    deployed.declare("b", config_map("default", "of-a"))
    done = deployed.ran(b, "apply", "--name=b", code=1)
    assert 'Error occurred during stage "apply": ' in done.stderr
    assert "belongs to target a" in done.stderr


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
