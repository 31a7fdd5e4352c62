"""What the original Kubernixos has deployed on a real cluster: found however kubectl applied it, never mixed up with what is copied."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

from handler.config.settings import Prune
from handler.engine.prune_alone import PruneAlone
from handler.model.names import KUBERNIXOS, PART_OF
from handler.model.plan import Action
from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map, definition, namespace, offer, service
from tests.e2e.one_target import SCOPED, Shop

OLD = "0a1b2c3d" * 7 + "0a1b2c"
COMPAT: dict[str, Any] = {"compat": "kubernixos", "adopt": ("kubernixos",)}
HOLDERS = Prune(kinds=("Namespace", "CustomResourceDefinition", "PersistentVolumeClaim"))


def by_original(shop: Shop, *documents: Document, server_side: bool = False) -> None:
    """Deploy as the original does: the label on each object, one List, by kubectl apply."""
    items = [labelled(each) for each in documents]
    how = ["--server-side"] if server_side else []
    shop.kubectl.run("apply", *how, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def labelled(document: Document) -> Document:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), KUBERNIXOS: OLD}}}


def alone(shop: Shop) -> PruneAlone:
    """Prune as the word does: nothing is applied, and the setting that keeps webhooks from deleting doesn't count."""
    deps = shop.handler.dependencies(shop.name)
    target = replace(deps.target, prune=replace(deps.target.prune, enabled=True))
    return PruneAlone(replace(deps, target=target), shop.job("oneoff", force=True), threading.Event())


def found(shop: Shop) -> dict[str, str]:
    """Return what would be deleted, or what keeps it."""
    return {str(each.identity): "" if each.writes else each.reason for each in alone(shop).look().plan.prunes}


def pruned(shop: Shop) -> set[str]:
    """Delete what is found; return what went."""
    run = alone(shop)
    return {str(each.identity) for each in run.carry_out(run.look()) if each.writes}


def event(shop: Shop) -> Document:
    """Return an object that two API groups serve."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": shop.name},
        "regarding": {"kind": "Namespace", "name": shop.name, "namespace": shop.name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "a",
        "reportingInstance": "b",
        "reason": "c",
        "action": "d",
        "type": "Normal",
    }


def test_what_the_original_deployed_is_taken_over_and_what_is_left_of_it_alone_is_deleted(shop: Shop) -> None:
    shop.configure(**COMPAT, prune=HOLDERS, cluster_scoped=("Namespace",))  # not the definitions of other tests
    kept, left, more = (config_map(shop.name, name) for name in ("kept", "left", "more"))
    by_original(shop, kept, left, service(shop.name, "web"))
    by_original(shop, more, server_side=True)
    shop.kubectl.run("annotate", "configmap", "left", "-n", shop.name, "kubectl.kubernetes.io/last-applied-configuration-")
    shop.kubectl.run("create", "configmap", "own", "-n", shop.name)
    shop.kubectl.run("label", "configmap", "own", "-n", shop.name, f"{KUBERNIXOS}={OLD}")
    mirrored = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "headless", "namespace": shop.name}, "subsets": []}
    shop.kubectl.run("create", "-f", "-", given=json.dumps(labelled(mirrored)))
    shop.push(kept)
    before = shop.versions([left])
    planned = shop.run("oneoff", dry_run=True).plan
    assert planned
    assert [(str(each.identity), each.action, each.adopted) for each in planned.changes] == [
        (f"ConfigMap/{shop.name}/kept", Action.UPDATE, True)
    ]
    shop.applied()
    live = shop.live(kept)
    assert live
    assert (len(live["metadata"]["labels"][KUBERNIXOS]), live["metadata"]["labels"][PART_OF]) == (62, shop.applyset)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    why = found(shop)
    going = {f"ConfigMap/{shop.name}/left", f"ConfigMap/{shop.name}/more", f"Service/{shop.name}/web"}
    assert {name for name, reason in why.items() if not reason} == going
    assert "copied" in why[f"Endpoints/{shop.name}/headless"]
    assert "copied" in why[f"ConfigMap/{shop.name}/own"]
    assert shop.versions([left]) == before, "only the word deletes, and looking writes nothing"
    assert pruned(shop) == going
    assert (shop.live(left), shop.live(kept)) == (None, live)
    by_original(shop, event(shop))
    shop.push(kept, event(shop))
    assert not {name for name, reason in found(shop).items() if not reason}, "what is declared in another API group is the same object"


def test_holders_go_only_with_nothing_in_them(shop: Shop) -> None:
    space, crd = shop.create_namespace(f"{shop.name}-jobs"), definition(shop.group)
    shop.configure(**COMPAT, prune=HOLDERS, cluster_scoped=SCOPED)
    by_original(shop, namespace(space), crd, config_map(shop.name, "kept"))
    shop.push(config_map(shop.name, "kept"))
    shop.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{shop.group}")
    shop.kubectl.run("create", "-f", "-", given=json.dumps(offer(shop.group, shop.name, "one")))
    shop.kubectl.run("create", "configmap", "inside", "-n", space)
    why = found(shop)
    assert why[f"Namespace/{space}"].startswith("still holds ConfigMap/")
    assert why[f"CustomResourceDefinition/offers.{shop.group}"].startswith("still has instances (1)")
