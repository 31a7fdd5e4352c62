"""Annotations of other tools that steer an apply, on a real cluster: what they keep is read with kubectl, never in Anneal's own words."""

from __future__ import annotations

import base64
import json

import pytest

from handler.model.plan import Action
from handler.model.result import Outcome, Result
from tests.e2e.documents import Document, config_map, job, secret, service
from tests.e2e.shop import Shop, told

FLUX = "kustomize.toolkit.fluxcd.io"
SYNC = "argocd.argoproj.io/sync-options"
EXCLUSIONS = [{f"{FLUX}/reconcile": "disabled"}, {f"{FLUX}/ssa": "Ignore"}]


def seen(shop: Shop, document: Document) -> tuple[str, str, object]:
    """Return uid, resourceVersion and data of what lives, as kubectl reads it."""
    live = shop.live(document)
    assert live, f"{document['metadata']['name']} is gone"
    return live["metadata"]["uid"], live["metadata"]["resourceVersion"], live.get("data")


def by_hand(shop: Shop, *documents: Document) -> None:
    """Create objects as an operator of the cluster does, so that Anneal doesn't know them."""
    shop.kubectl.run("create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))


def annotate(shop: Shop, kind: str, name: str, *marks: str) -> None:
    shop.kubectl.run("annotate", "--overwrite", kind, name, "-n", shop.name, *marks)


def kept(result: Result) -> dict[str, str]:
    """Return what a plan leaves alone and why, by identity."""
    assert result.plan
    return {str(each.identity): each.reason for each in result.plan.changes if each.action is Action.SKIP}


# --- only where it is missing
@pytest.mark.parametrize(
    "mark",
    [
        {"annotations": {f"{FLUX}/ssa": "IfNotPresent"}},
        {"labels": {f"{FLUX}/ssa": "ifnotpresent"}},
        {"annotations": {"kapp.k14s.io/update-strategy": "skip"}},
        {"annotations": {"client.lifecycle.config.k8s.io/mutation": "ignore"}},
    ],
    ids=lambda mark: "-".join(value for part in mark.values() for value in part.values()),
)
def test_a_secret_that_is_only_created_is_never_overwritten_by_the_placeholder_of_git(shop: Shop, mark: dict[str, dict[str, str]]) -> None:
    live = secret(shop.name, "password", "the real one")
    by_hand(shop, live)
    before = seen(shop, live)
    shop.push(secret(shop.name, "password", "placeholder", **mark), secret(shop.name, "made", "first", **mark))
    shop.applied()
    assert seen(shop, live) == before
    made = seen(shop, secret(shop.name, "made", ""))
    assert made[2] == {"value": base64.b64encode(b"first").decode()}
    shop.push(secret(shop.name, "password", "other", **mark), secret(shop.name, "made", "second", **mark))
    shop.run()
    shop.run("drift")
    assert seen(shop, live) == before
    assert seen(shop, secret(shop.name, "made", "")) == made
    shop.push(config_map(shop.name, "rest"))
    shop.applied()
    assert seen(shop, live) == before, "what was never ours isn't pruned"
    assert shop.live(secret(shop.name, "made", "")) is None, "what was created is ours, and goes with its file"
