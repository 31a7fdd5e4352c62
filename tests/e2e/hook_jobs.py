"""Jobs that are hooks, and what the record says of them."""

from __future__ import annotations

from typing import Any

from handler.model.rollout import ARGO_HOOK
from handler.rollout.hook_annotations import ARGO_POLICY, ARGO_WAVE
from tests.e2e.documents import Document, job
from tests.e2e.one_target import Shop

DOOMED = {"activeDeadlineSeconds": 1}


def hook(shop: Shop, name: str, phases: str, wave: int = 0, policy: str = "", image: str = "act:1", **spec: Any) -> Document:
    """A Job that is an act, in the main namespace."""
    marks = {ARGO_HOOK: phases, ARGO_WAVE: str(wave)} | ({ARGO_POLICY: policy} if policy else {})
    made = job(shop.name, name, image, annotations=marks)
    made["spec"] |= spec
    return made


def doomed(made: Document) -> Document:
    """The same Job, whose pod finds no Node, so that it fails when its time is over."""
    made["spec"] |= DOOMED
    made["spec"]["template"]["spec"]["nodeSelector"] = {"there": "is-none"}
    return made


def held(made: Document) -> Document:
    """The same Job, which runs when the test lets it go."""
    made["spec"]["suspend"] = True
    return made


def waved(document: Document, wave: int) -> Document:
    document["metadata"]["annotations"] = {ARGO_WAVE: str(wave)}
    return document


def uid(shop: Shop, document: Document) -> str:
    live = shop.live(document)
    return str(live["metadata"]["uid"]) if live else ""


def steps(shop: Shop) -> dict[tuple[str, str], str]:
    """Return how the record says that each hook of the newest rollout ended."""
    progress = shop.state().rollout
    assert progress
    return {(step.group, step.object.rpartition("/")[2]): step.outcome for step in progress.steps}
