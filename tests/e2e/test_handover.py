"""One commit moves running things from one target of a repository to another: the same objects, the same pods, the same volumes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from handler.app.build import Handler
from handler.cli.group import anneal
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster, Impersonate
from handler.model.names import IDENTITY, PART_OF
from handler.model.result import Outcome, Result
from infra.controlplane import controlplane as controlplanes
from infra.githost import Host, Work
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import Document, claim, config_map, deployment, namespace, service
from tests.e2e.killed_runs import killed_moves
from tests.e2e.one_target import STATES, told
from tests.e2e.rbac_rights import ALL, allow
from tests.e2e.serve_process import until
from tests.e2e.two_targets import Pair


def running(space: str) -> tuple[Document, ...]:
    return (deployment(space, "web", replicas=2), claim(space, "data"), service(space, "web"))


def ran(pair: Pair) -> tuple[tuple[Document, ...], list[str]]:
    """Let a have what runs; return that and its uids."""
    documents = running(pair.space)
    pair.push(a=documents)
    pair.applied(pair.a, pair.b)
    until(lambda: len(pair.a.kubectl("get", "pods", "-n", pair.space)["items"]) == 2)
    return documents, pair.uids(*documents)


def reasons(result: Result) -> set[str]:
    assert result.plan, told(result)
    return {change.reason for change in result.plan.changes if change.sibling}


@pytest.mark.parametrize("first", ["a", "b"])
def test_running_objects_are_handed_over_whichever_target_runs_first(pair: Pair, first: str) -> None:
    documents, before = ran(pair)
    pair.push(b=documents)
    assert reasons(pair.a.run(dry_run=True)) == {f"hand over to {pair.b.name}"}
    assert reasons(pair.b.run(dry_run=True)) == {f"taken over from {pair.a.name}"}
    pair.applied(*((pair.a, pair.b) if first == "a" else (pair.b, pair.a)))
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.b.name})
    for shop in (pair.a, pair.b):
        assert shop.run("drift").outcome is Outcome.UNCHANGED
        assert shop.state().orphans == ()
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.b.name})


def test_fields_that_the_taker_does_not_declare_go_and_are_in_its_plan(pair: Pair) -> None:
    web = deployment(pair.space, "web")
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "old"}]
    pair.push(a=(web,))
    pair.applied(pair.a)
    before = pair.uids(web)
    pair.push(b=(deployment(pair.space, "web", image="shop:2"),))
    planned = pair.b.run(dry_run=True).plan
    assert planned
    shown = {each.path for change in planned.changes if change.sibling for each in change.fields}
    assert any("env" in path for path in shown), shown
    pair.applied(pair.b, pair.a)
    containers = (pair.a.live(web) or {})["spec"]["template"]["spec"]["containers"]
    assert ("env" in containers[0], containers[0]["image"], pair.uids(web)) == (False, "shop:2", before)


@pytest.mark.parametrize("value", ["IfNotPresent", "Ignore"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_hand_over_to_ssa_if_not_present_or_ignore_changes_the_inventory_marks_alone(pair: Pair, first: str, value: str) -> None:
    documents, before = ran(pair)
    web = deployment(pair.space, "web", image="shop:2", replicas=7, annotations={"kustomize.toolkit.fluxcd.io/ssa": value})
    specs = (pair.a.live(web) or {})["spec"]
    pair.push(a=documents[1:], b=(web,))
    planned = pair.b.run(dry_run=True).plan
    assert planned
    shown = {each.path for change in planned.changes if change.sibling for each in change.fields}
    assert shown == {f"metadata.annotations.{IDENTITY}", f"metadata.labels.{PART_OF}"}
    pair.applied(*((pair.a, pair.b) if first == "a" else (pair.b, pair.a)))
    for shop in (pair.a, pair.b):
        assert shop.run("drift").outcome is Outcome.UNCHANGED
        assert shop.state().orphans == ()
    assert (pair.uids(*documents), pair.owners(web), (pair.a.live(web) or {})["spec"]) == (before, {pair.b.name}, specs)
    pair.push(a=documents[1:], b=(deployment(pair.space, "web", image="shop:3", replicas=None),))
    pair.applied(pair.b)
    spec = (pair.a.live(web) or {})["spec"]  # the replicas that a declared go with b's first apply: they were still ours
    assert (spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]) == (1, "shop:3")
    assert pair.b.run("drift").outcome is Outcome.UNCHANGED
    pair.push(a=documents[1:])
    pair.applied(pair.b, pair.a)
    assert pair.a.live(web) is None


def test_an_immutable_field_that_changes_in_the_move_obeys_the_takers_rules(pair: Pair) -> None:
    pair.push(a=(claim(pair.space, "data"),))
    pair.applied(pair.a)
    before = pair.uids(claim(pair.space, "data"))
    changed = claim(pair.space, "data")
    changed["spec"]["accessModes"] = ["ReadWriteMany"]
    pair.push(b=(changed,))
    refused = pair.b.run()
    assert refused.outcome is Outcome.FAILED
    assert "an immutable field changed" in str(refused.problems[0])
    pair.applied(pair.a)
    assert (pair.uids(claim(pair.space, "data")), pair.owners(claim(pair.space, "data"))) == (before, {pair.a.name})


def test_a_namespace_moves_with_what_is_in_it(pair: Pair) -> None:
    space = f"{pair.space}-jobs"
    whole = (namespace(space), config_map(space, "inside"))
    pair.configure(a={"namespaces": (pair.space, space)}, b={"namespaces": (pair.space, space)})
    pair.push(a=whole)
    pair.applied(pair.a)
    before = pair.uids(*whole)
    pair.push(b=whole)
    planned = pair.b.run(dry_run=True).plan
    assert planned
    assert {change.reason for change in planned.writes if change.identity.name in (space, "inside")} == {f"taken over from {pair.a.name}"}
    pair.applied(pair.a, pair.b, pair.a)
    assert (pair.uids(*whole), pair.owners(*whole)) == (before, {pair.b.name})
    pair.a.kubectl.delete_namespaces(space)


def test_an_object_declared_by_both_siblings_is_refused_naming_both_files(pair: Pair) -> None:
    documents, before = ran(pair)
    pair.push(a=documents, b=documents[:1])
    refused = pair.b.run()
    assert (refused.outcome, len(refused.problems)) == (Outcome.FAILED, 1), told(refused)
    assert f"belongs to target {pair.a.name}, which declares it, too, at a/Deployment-web.yaml:1" in str(refused.problems[0])
    assert refused.problems[0].place == "b/Deployment-web.yaml:1"
    pair.applied(pair.a)
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.a.name})


def test_a_sibling_that_does_not_render_holds_prune_until_the_hand_over(pair: Pair) -> None:
    documents, before = ran(pair)
    pair.push(b=documents)
    pair.work.write("b/broken.yaml", "a: [1")
    pair.work.commit("A mistake")
    pair.work.push()
    held = pair.a.run()
    assert held.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), told(held)
    assert all("can't be rendered" in reason for reason in reasons(held)), reasons(held)
    assert pair.uids(*documents) == before
    pair.push(b=documents)
    pair.applied(pair.a, pair.b)
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.b.name})


def test_a_rolled_back_giver_keeps_the_object(pair: Pair) -> None:
    documents, before = ran(pair)
    old = pair.a.head
    pair.push(b=documents)
    assert pair.a.run("replay", commit=old, force=True, actor="ann").standing.pinned  # type: ignore[union-attr]  # it has a record
    refused = pair.b.run()
    assert f"`anneal unpin {pair.a.name}`" in refused.problems[0].fix, told(refused)
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.a.name})
    pair.a.run("replay", unpin=True, actor="ann")
    pair.applied(pair.b)
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.b.name})


def test_hand_over_works_with_rights_in_each_targets_namespace_alone(pair: Pair) -> None:
    account = replace(pair.a, name=pair.space)
    allow(account, (ALL, "", "configmaps"))
    deployer = {"impersonate": Impersonate(f"{pair.space}/deployer"), "cluster_scoped": ()}
    pair.configure(a=deployer, b=deployer)
    moved = config_map(pair.space, "moved")
    pair.push(a=(moved,))
    pair.applied(pair.a, pair.b)
    before = pair.uids(moved)
    pair.push(b=(moved,))
    pair.applied(pair.a, pair.b, pair.a)
    assert (pair.uids(moved), pair.owners(moved)) == (before, {pair.b.name})


def test_the_same_names_on_another_cluster_are_no_sibling(pair: Pair, spare_directory: Path) -> None:
    other = replace(pair.a.kubectl, kubeconfig=controlplanes.up(spare_directory))
    try:
        other.create_namespace(pair.space)
        ways = [Cluster(kubeconfig=SecretRef(file=str(each.kubeconfig))) for each in (pair.a.kubectl, other)]
        pair.b.kubectl = other
        pair.configure(a={"cluster": ways[0]}, b={"cluster": ways[1]})
        for shop in (pair.a, pair.b):
            shop.handler = Handler(pair.settings, shop.handler.secrets, shop.sandbox, {})
        both = config_map(pair.space, "both")
        pair.push(a=(both,), b=(both,))
        pair.applied(pair.a, pair.b)
        pair.push(b=(both,))
        pair.applied(pair.a, pair.b)
        assert (pair.a.live(both), pair.b.live(both) is not None) == (None, True)
    finally:
        controlplanes.down(spare_directory)


# --- between repositories
def written(pair: Pair, repository: str, place: Path) -> Path:
    """Write the configuration of a and of b, which follows another repository."""
    targets = [
        {
            "name": shop.name,
            "repository": {"url": url},
            "path": shop.target.path,
            "namespaces": [pair.space],
        }
        for shop, url in ((pair.a, pair.a.target.repository.url), (pair.b, repository))
    ]
    config = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "targets": targets}
    (place / "anneal.yaml").write_text(yaml.safe_dump(config))
    return place / "anneal.yaml"


def test_hand_over_between_repositories_by_the_printed_commands(pair: Pair, host: Host, tmp_path: Path) -> None:
    """Each command is carried out as it is printed, and after each of them the object is what it was."""
    other = f"{pair.space}-other"
    work = Work.of(host, other)
    config = written(pair, host.url_of(other), tmp_path)
    moved = deployment(pair.space, "web", replicas=1)
    pair.push(a=(moved,))
    work.write("b/web.yaml", json.dumps(moved))
    work.commit("It comes")
    work.push()

    def run(command: str, code: int = 0) -> str:
        program, *arguments = shlex.split(command)
        if program == "kubectl":
            return pair.a.kubectl.run(*arguments)
        environ = {"ANNEAL_CONFIG": str(config), "KUBECONFIG": str(pair.a.kubectl.kubeconfig)}
        result = CliRunner(env=environ).invoke(anneal, arguments)
        assert result.exit_code == code, f"{command}: {result.output}"
        return result.output

    run(f"anneal apply {pair.a.name}")
    before = (pair.a.live(moved) or {})["metadata"]["uid"]
    refusal = run(f"anneal apply {pair.b.name}", code=1)
    assert f"belongs to target {pair.a.name}" in refusal
    commands = re.findall(r"`([^`]+)`", refusal)
    assert [command.split()[1] for command in commands] == ["suspend", "label", "annotate", "apply", "resume"], refusal
    for command in commands:
        run(command)
        if "suspend" in command:
            pair.push()
        assert (pair.a.live(moved) or {})["metadata"]["uid"] == before, command
    run(f"anneal apply {pair.a.name}")
    run(f"anneal apply {pair.b.name}")
    assert ((pair.a.live(moved) or {})["metadata"]["uid"], pair.owners(moved)) == (before, {pair.b.name})


# --- killed
@pytest.mark.slow
@pytest.mark.parametrize("first", ["giver", "taker"])
def test_a_move_killed_after_any_write_is_finished_by_the_next_runs(pair: Pair, wired: Callable[[], Wired], first: str) -> None:
    (moved, *others), before = ran(pair)

    def moving(number: int) -> tuple[Document, ...]:
        return (*others, {**moved, "metadata": {**moved["metadata"], "labels": {"move": str(number)}}})

    for number, taker in killed_moves(pair, wired, first, moving):
        assert (pair.uids(moved, *others), pair.owners(moved, *others)) == (before, {taker.name}), number
