"""One commit moves running things from one target of a repository to another: the same objects, the same pods, the same volumes."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import yaml
from click.testing import CliRunner

from handler.cli.group import anneal
from handler.config.settings import Impersonate
from handler.model.result import Outcome, Result
from infra.githost import Host, Work
from tests.e2e.documents import Document, claim, deployment, service
from tests.e2e.one_target import STATES, told
from tests.e2e.rbac_rights import ALL, allow
from tests.e2e.two_targets import Pair
from tests.patience import until


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


def test_running_objects_are_handed_over_with_rights_in_their_namespace_alone(pair: Pair) -> None:
    kinds = (("", "configmaps"), ("apps", "deployments"), ("", "persistentvolumeclaims"), ("", "services"))
    allow(replace(pair.a, name=pair.space), *((ALL, group, kind) for group, kind in kinds))
    deployer = {"impersonate": Impersonate(f"{pair.space}/deployer"), "cluster_scoped": ()}
    pair.configure(a=deployer, b=deployer)
    documents, before = ran(pair)
    pair.push(b=documents)
    assert reasons(pair.a.run(dry_run=True)) == {f"hand over to {pair.b.name}"}
    assert reasons(pair.b.run(dry_run=True)) == {f"taken over from {pair.a.name}"}
    pair.applied(pair.a, pair.b)
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.b.name})
    for shop in (pair.a, pair.b):
        assert shop.run("drift").outcome is Outcome.UNCHANGED
        assert shop.state().orphans == ()
    assert (pair.uids(*documents), pair.owners(*documents)) == (before, {pair.b.name})


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
