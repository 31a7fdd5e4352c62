"""`dependsOn` over two repositories: what is new waits until the other has what git says and is healthy; what is recorded doesn't."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from handler.app.build import Handler
from handler.config.git_settings import SecretRef
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Cluster
from handler.engine.run.errors import DependencyNotReady
from handler.model.result import Outcome, Result
from handler.render.sandbox import Sandbox
from infra.githost import Host
from tests.e2e.api_proxy import Wired
from tests.e2e.one_target import told
from tests.e2e.ordered_targets import Ordered
from tests.kubectl import Kubectl


def assert_waits(result: Result, *words: str) -> None:
    """It waits for the other target, and says why and what helps."""
    assert (result.outcome, result.code) == (Outcome.WAITING, DependencyNotReady.code), told(result)
    said = str(result.problems[0])
    assert all(word in said for word in words), said


def deployed(ordered: Ordered) -> None:
    for shop in (ordered.infra, ordered.apps):
        ordered.push(shop, "1")
        shop.applied()


def test_a_cluster_that_does_not_answer_holds_up_what_depends_on_it(
    host: Host, sandbox: Sandbox, kubectl: Kubectl, wired: Callable[[], Wired]
) -> None:
    """The dependency is reached by another kubeconfig, whose server goes."""
    wire = wired()
    ordered = Ordered.of(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl)
    kubectl.create_namespace(ordered.space)
    for name, path in (("infra", wire.kubeconfig), ("apps", kubectl.kubeconfig)):
        ordered.configure(**{name: {"cluster": Cluster(SecretRef(file=str(path)))}})
    ordered.infra.handler = ordered.apps.handler = reaching_each(ordered)
    deployed(ordered)
    ordered.push(ordered.apps, "2")
    wire.close()
    ordered.apps.handler = reaching_each(ordered)
    assert_waits(ordered.apps.run(), "can't be seen", f"anneal status {ordered.infra.name}")
    assert ordered.version(ordered.apps) == "1"
    kubectl.leave_namespaces(ordered.space)


def reaching_each(ordered: Ordered) -> Handler:
    """Return a handler that reaches each target's cluster as that says."""
    return Handler(ordered.settings, resolve_all(ordered.settings, os.environ, needs=RUNS), ordered.apps.sandbox, os.environ)
