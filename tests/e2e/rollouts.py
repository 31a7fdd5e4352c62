"""Rollouts that shops carry out: a Rollout document over the shop's documents, and what their records tell."""

from __future__ import annotations

import json
from typing import Any

from handler.model.names import identity_of
from handler.state.record import Progress, StepRecord
from tests.e2e.documents import Document
from tests.e2e.shop import Shop

ROLLOUT = "rollout.yaml"


def key_of(document: Document) -> str:
    """Return how a Rollout calls a document that a shop declares: its file."""
    return f"{str(identity_of(document)).replace('/', '-')}.yaml"


def step(action: str, document: Document, **more: Any) -> Document:
    return {"name": document["metadata"]["name"], "object": key_of(document), "action": action, **more}


def group(name: str, *steps: Document, parallel: bool = False) -> Document:
    return {"name": name, "parallel": parallel, "steps": list(steps)}


def push(shop: Shop, documents: list[Document], *groups: Document, parallel: bool = False) -> str:
    """Declare these documents and this Rollout over them, and push both as one commit."""
    spec = {"parallel": parallel, "groups": list(groups)}
    body = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "all"}, "spec": spec}
    shop.work.write(ROLLOUT, json.dumps(body, indent=1))
    return shop.push(*documents)


def progress(shop: Shop) -> Progress:
    """Return what the record tells of the newest rollout."""
    found = shop.state().rollout
    assert found, "no rollout was begun"
    return found


def outcomes(shop: Shop) -> dict[str, str]:
    return {each.step: each.outcome for each in progress(shop).steps}


def recorded(shop: Shop, name: str) -> StepRecord:
    return next(each for each in progress(shop).steps if each.step == name)
