"""The stage as the page's pictures show it: a target that waits for approval, one that rolls out, one that is unhealthy, one that is well.

Law: it holds still. What rolls out is in the first share of a canary, for an hour; what waits for a person is answered by none.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from infra.controlplane.pod_failures import FATE
from infra.demo import scenes
from infra.demo.configuration import Further
from infra.demo.narration import DemoFailed
from infra.demo.rendered import VOUCHERS
from infra.demo.walkthrough import Walkthrough

CHECKOUT = Further("checkout", "checkout", more=("rollout: checkout/rollout.yaml", "wait: {timeout: 3h, progressTimeout: 3h}"))
BEFORE = ("push", "image", "drift", "refused", "kustomize", "helm")
"""The scenes that give the targets their history."""
PATIENCE = 120.0
POLL = 0.2
_POD = "      labels: {app: {{ .Release.Name }}}\n    spec:"


def pictured(demo: Walkthrough) -> None:
    """Bring the stage of an opened demo into that state; its control plane is its own. Raises DemoFailed."""
    scenes.play(demo, scenes.chosen(BEFORE))
    demo.voice.step("What the page's pictures show")
    _rolled_out_once(demo)
    _held(demo)
    _unhealthy(demo)
    _rolling_out(demo)
    _wait("a target that is degraded", lambda: "degraded" in demo.stage.anneal("status", VOUCHERS.name).stdout)


def _rolled_out_once(demo: Walkthrough) -> None:
    demo.repository.add(CHECKOUT.path)
    commit = demo.repository.commit("A checkout of its own")
    demo.add(CHECKOUT)
    line = demo.push(commit, CHECKOUT.name)
    demo.voice.check(line.outcome == "applied", "the checkout runs")


def _held(demo: Walkthrough) -> None:
    demo.repository.work.remove("deploy/back")
    line = demo.push(demo.repository.commit("Tidy up"))
    demo.voice.check(line.outcome == "held", "the shop waits for approval")


def _unhealthy(demo: Walkthrough) -> None:
    """Let the vouchers' newest image be missing."""
    template = f"{VOUCHERS.path}/templates/vouchers.yaml"
    demo.repository.replace(template, "whoami:v1.11", "whoami:v1.12")
    demo.repository.replace(template, _POD, _POD.replace("    spec:", f"      annotations: {{{FATE}: no-image}}\n    spec:"))
    demo.push(demo.repository.commit("whoami 1.12 for vouchers"), VOUCHERS.name)


def _rolling_out(demo: Walkthrough) -> None:
    """Begin a rollout, which stays in its canary's first share."""
    for name in ("checkout", "receipts"):
        demo.edit(f"{name}.yaml", "whoami:v1.10", "whoami:v1.11", CHECKOUT.path)
    demo.send(demo.repository.commit("whoami 1.11 for the checkout"))
    kubectl, front = demo.stage.kubectl, demo.stage.names.front
    ready = ("get", "deployments", "checkout-canary", "--ignore-not-found", "-n", front, "-o", "jsonpath={.status.readyReplicas}")
    _wait("the canary", lambda: kubectl.run(*ready).strip() == "2")


def _wait(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise DemoFailed(f"waited {PATIENCE:.0f} s in vain for {what}")
        time.sleep(POLL)
