"""Which pods of a StatefulSet stay at a revision that isn't due any more."""

from __future__ import annotations

from typing import Any

import pytest

from handler.health.stuck_pods import DueRevision, is_stuck

NOW = 1_900_000_000.0
Object = dict[str, Any]


def stateful(*, seen: int = 3, **spec: Any) -> Object:
    status = {"observedGeneration": seen, "updateRevision": "db-new"}
    return {"kind": "StatefulSet", "metadata": {"uid": "u-db", "generation": 3}, "spec": spec, "status": status}


def pod(name: str = "db-1", revision: str = "db-old", ready: str = "False", owner: str = "u-db", **metadata: Any) -> Object:
    owners = [{"uid": owner, "controller": True}]
    labels = {"controller-revision-hash": revision} if revision else {}
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2030-03-17T17:46:20Z"}
    return {"metadata": {"name": name, "labels": labels, "ownerReferences": owners, **metadata}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("live", "of", "past"),
    [
        (stateful(), pod(), True),
        (stateful(), pod(revision="db-new"), False),
        (stateful(), pod(revision=""), False),
        (stateful(), pod(ready="True"), False),
        (stateful(), pod(owner="u-other"), False),
        (stateful(), pod(deletionTimestamp="2030-03-17T17:46:39Z"), False),
        (stateful(seen=2), pod(), False),
        (stateful(podManagementPolicy="Parallel"), pod(), False),
        (stateful(updateStrategy={"rollingUpdate": {"partition": 1}}), pod(), True),
        (stateful(updateStrategy={"rollingUpdate": {"partition": 2}}), pod(), False),
        (stateful(ordinals={"start": 2}), pod(), False),
        (stateful() | {"kind": "Deployment"}, pod(), False),
        (None, pod(), False),
    ],
    ids=["", "due", "no-revision", "ready", "another's", "goes", "unseen", "parallel", "above", "below", "start", "no-set", "gone"],
)
def test_a_pod_is_past_that_is_unready_and_of_another_revision_than_is_due(live: Object | None, of: Object, past: bool) -> None:
    assert DueRevision.of(live).is_past(of) is past


def test_a_pod_that_may_only_be_starting_isnt_stuck_yet() -> None:
    assert not is_stuck(pod(), NOW - 3600)
    assert is_stuck(pod(), NOW)
    waiting = pod()
    waiting["status"]["containerStatuses"] = [{"name": "db", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    assert is_stuck(waiting, NOW - 3600)
