"""A target that follows what others have proven: on the real cluster, by a real git host."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from handler.app.build import Handler, Options
from handler.app.overview import Overview
from handler.config.git_settings import Promoted, Revision, SecretRef
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Cluster, Settings
from handler.model.event import Job
from handler.model.result import Outcome
from handler.render.sandbox import Sandbox
from infra.githost import Host
from tests.e2e.documents import deployment
from tests.e2e.one_target import told
from tests.e2e.promotion_line import SOAK, PromotionLine
from tests.kubectl import Kubectl

Open = Callable[..., PromotionLine]
TWO: dict[str, tuple[str, ...]] = {"staging": (), "prod": ("staging",)}


@pytest.fixture
def opened(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Open]:
    made: list[PromotionLine] = []

    def line(sources: dict[str, tuple[str, ...]] = TWO, soak: float = SOAK) -> PromotionLine:
        made.append(PromotionLine(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl, sources, soak))
        return made[-1]

    yield line
    for each in made:
        each.close()


@pytest.fixture
def line(opened: Open) -> PromotionLine:
    """Production is on the first commit, which staging has proven."""
    made = opened()
    made.push("1", deployment(made.space, "web"))
    made.well("staging")
    made.later(SOAK)
    made.done("prod")
    return made


def test_a_commit_soaks_is_replaced_breaks_and_is_rolled_back_from(line: PromotionLine) -> None:
    web = deployment(line.space, "web")
    second = line.push("2", web)
    line.well("staging")
    waits = line.done("prod")
    assert (bool(re.search(rf"{second[:12]} healthy for \d+[sm] of 30m", waits.message)), line.value("prod")) == (True, "1"), told(waits)
    assert waits.next_try > time.time() + line.ahead
    # broken for a while: its clock starts again
    line.kubectl.run("delete", "deployment", "web-staging", "-n", line.space, "--wait=true")
    line.run("staging")  # a tick looks
    assert line.shops["staging"].state().health.state == "degraded"
    line.later(SOAK)
    assert "degraded since" in line.done("prod").message
    line.well("staging", "drift")
    assert line.shops["staging"].state().health.state == "healthy"
    line.later(SOAK / 2)
    assert line.on("prod") != second
    line.later(SOAK / 2)
    assert (line.on("prod"), line.value("prod")) == (second, "2")
    # replaced before it had soaked, and after
    third = line.push("3", web)
    line.well("staging")
    line.later(SOAK / 2)
    fourth = line.push("4", web)
    line.well("staging")
    line.later(SOAK)
    fifth = line.push("5", web)
    line.well("staging")
    assert line.on("prod") == fourth
    # rolled back from, although it had soaked
    line.later(2 * SOAK)
    line.well("staging", "oneoff", rollback=True, actor="ada")
    assert line.shops["staging"].state().commit == fourth
    line.later(SOAK)
    assert line.on("prod") == fourth
    assert line.value("prod") == "4"
    assert len({third, fifth}) == 2
    row = Overview(line.settings, line.shops["prod"].handler).look([line.shops["prod"].target])[0]
    assert row.newest
    assert (row.newest.commit, row.is_behind, row.newest.awaited) == (fourth, False, ())
    refused = line.run("prod", "oneoff", promote=True, commit=fifth)
    assert (refused.outcome, "was rolled back from" in refused.message) == (Outcome.REFUSED, True), told(refused)


def read_only(line: PromotionLine, namespace: str, place: Path) -> Path:
    """Return the kubeconfig of an account that may read the records and the heartbeat in a namespace, and nothing else."""
    kubectl, rules = line.kubectl, [("", "configmaps"), ("coordination.k8s.io", "leases")]
    kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": namespace}})
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader", "namespace": namespace}}
    role = {**head, "kind": "Role", "rules": [{"apiGroups": [group], "resources": [kind], "verbs": ["get"]} for group, kind in rules]}
    binding = {
        **head,
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    kubectl.grant(yaml.safe_dump_all([role, binding]))
    token = kubectl.run("create", "token", "reader", "-n", namespace).strip()
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    config["users"] = [{"name": "reader", "user": {"token": token}}]
    for each in config["contexts"]:
        each["context"]["user"] = "reader"
    place.write_text(yaml.safe_dump(config))
    return place


def test_records_of_another_installation_on_another_cluster_are_read_with_the_least_rights(
    opened: Open, tmp_path: Path, sandbox: Sandbox
) -> None:
    line = opened()
    staging, prod = line.shops["staging"], line.shops["prod"]
    elsewhere = f"{line.space}-states"
    line.kubectl.create_namespace(elsewhere)
    there = Settings(targets=(staging.target,), state_namespace=elsewhere, installation="staging")
    options = Options(kubeconfig=str(line.kubectl.kubeconfig), clock=lambda: time.time() + line.ahead)
    other = Handler(there, resolve_all(there, os.environ, needs=RUNS), sandbox, os.environ, options)
    cluster = Cluster(kubeconfig=SecretRef(file=str(read_only(line, elsewhere, tmp_path / "reader.yaml"))))
    follows = Promoted((staging.name,), SOAK, cluster, elsewhere, "staging")
    line.configure(prod={"revision": Revision(promoted=follows)})
    first = line.push("1")
    assert line.run("prod").outcome is Outcome.WAITING
    assert other.run(Job(staging.name, "tick")).outcome is Outcome.APPLIED
    line.later(SOAK / 2)
    assert line.run("prod").outcome is Outcome.WAITING
    line.later(SOAK / 2)
    assert line.on("prod") == first
    row = Overview(line.settings, prod.handler).look([prod.target])[0]
    assert row.newest
    assert (row.newest.commit, row.newest.trouble) == (first, None)
    line.configure(prod={"revision": Revision(promoted=replace(follows, installation="another"))})
    line.push("2")
    other.run(Job(staging.name, "tick"))
    line.later(SOAK)
    held = line.done("prod")
    assert "its record is of the installation staging, not another" in held.message, told(held)
    line.kubectl.leave_namespaces(elsewhere)
