"""Waiting until what was applied is healthy: who is waited for, when that ends early, and what is said then."""

from __future__ import annotations

import json
from typing import Any

from handler.config.settings import EvidenceSettings, Wait
from handler.model.result import Outcome
from infra.controlplane.pod_failures import LOG
from tests.e2e.documents import Document, config_map, deployment, job, secret
from tests.e2e.one_target import Shop, told
from tests.e2e.workload_status import fated, stand_still
from tests.patience import until

PATIENT = Wait(120.0, 120.0)
PRINTED = ("swordfish-4711", "mackerel-0815", "eyJ")
"""What of the log no text may hold."""


def failed(shop: Shop, **fields: Any) -> str:
    """Run the target; it must fail as a rollout. Return what is said."""
    result = shop.run(**fields)
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    return result.message


def _status(shop: Shop, document: Document) -> str:
    return json.dumps((shop.live(document) or {}).get("status"))


def test_a_failed_object_ends_the_wait_at_once_with_its_cause(shop: Shop) -> None:
    shop.configure(wait=PATIENT)
    broken = fated(deployment(shop.name, "api", replicas=1), "crash-loop", progressDeadlineSeconds=1)
    shop.push(broken, secret(shop.name, "db", "swordfish-4711"), fated(job(shop.name, "migrate"), "failed", backoffLimit=0))
    assert failed(shop).count(": failed: ") >= 1
    until(lambda: "BackoffLimitExceeded" in _status(shop, job(shop.name, "migrate")))
    until(lambda: "ProgressDeadlineExceeded" in _status(shop, broken) and stand_still(shop, "api", reason="BackOff"))
    said = failed(shop, force=True)
    api, migrate = sorted(said.splitlines())
    assert "failed: 0 of 1 replica available; ProgressDeadlineExceeded" in api
    assert "Deployment/" in api
    assert "container main waits: CrashLoopBackOff: “back-off 5m0s restarting failed container" in api
    assert "container main ended with exit code 1" in api
    assert "restarted 5 times" in api
    assert "Warning BackOff" not in api, "the container has said so"
    assert "its log" not in said, "what it holds is anybody's guess"
    assert "failed: BackoffLimitExceeded" in migrate
    assert "container main ended with exit code 3" in migrate
    assert not any(line in said + str(shop.state()) for line in LOG[1:])
    assert len(shop.state().status.unhealthy) == 2
    assert shop.state().attempt is not None, "the commit isn't recorded"
    assert failed(shop, trigger="tick") == said
    shop.push(deployment(shop.name, "api", replicas=1), config_map(shop.name, "a"))
    shop.applied()
    assert shop.state().status.unhealthy == ()


def test_a_target_may_have_the_end_of_a_log_recorded_without_any_secret_that_its_pod_can_read(shop: Shop) -> None:
    """One of git, and one that another has made."""
    shop.configure(wait=PATIENT, evidence=EvidenceSettings("record"))
    broken = fated(deployment(shop.name, "api", replicas=1), "crash-loop", progressDeadlineSeconds=1)
    pod = broken["spec"]["template"]["spec"]
    names = [{"name": "theirs"}, {"name": "db"}, {"name": "absent", "optional": True}]
    pod["containers"][0]["envFrom"] = [{"secretRef": each} for each in names]
    shop.push(broken, secret(shop.name, "db", "swordfish-4711"))
    shop.kubectl.apply(secret(shop.name, "theirs", "mackerel-0815"))
    failed(shop)
    until(lambda: "ProgressDeadlineExceeded" in _status(shop, broken) and stand_still(shop, "api", reason="BackOff"))
    said = failed(shop, force=True)
    shown = "signed in with *** | postgres: no pg_hba entry for shop with *** | no table `orders`; password was ***"
    assert f"its log ends: “starting | GET /ready 503 | {shown}" in said
    assert not any(value in said + str(shop.state()) for value in PRINTED)
