"""States to test with: one full of everything, and any that hypothesis can think of."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from handler.model.event import Delivery
from handler.model.names import GroupKind, Identity
from handler.state.configmap import SUMMARY
from handler.state.record import (
    Approval,
    Attempt,
    Drift,
    Fact,
    HeldPlan,
    NamedRequest,
    Orphan,
    Pin,
    Progress,
    Refusal,
    Run,
    RunStatus,
    Stalled,
    State,
    StepRecord,
    Suspend,
    TargetHealth,
    WaitingFor,
)
from handler.state.record_format import stamp
from handler.state.record_values import DependencyWait, Obstacle, RecordedCommitStatus, RecordedPullRequest
from handler.state.soak import Soak
from handler.state.summary import home_of

NAMESPACE = "anneal-system"
COMMIT_STATUSES = (
    RecordedCommitStatus("a" * 40, "success", "3 created in 2.1 s", "shop.1", posted=True),
    RecordedCommitStatus("b" * 40, "superseded", "superseded by aaaaaaaaaaaa", unless="1" * 64, hinted=True),
)
TOOLING = "anneal/v0.1.0"
NOON = "2026-03-01T12:00:00Z"
TOKEN = "7d0a1c9e-0b1f-4a53-9a0e-3c3c2b1a0f9d.4"
API = Identity("apps", "Deployment", "shop", "api")


def sha(digit: str = "a") -> str:
    return digit * 40


def blank(**parts: Any) -> State:
    known = {"target": "shop", "installation": "default", "cluster_uid": "u-1", "repository": "https://git.example.com/acme/shop.git"}
    return State(**(known | parts))


REFUSAL = Refusal(
    "e" * 40,
    "1" * 64,
    "2" * 64,
    ("deploy", "lib/common"),
    (Fact("web", "Namespace", "v1", "namespaces"), Fact(kind="Offer", api_version="tea.example.com/v1"), Fact("back", seen="7")),
    NOON,
)


SOAKS = (
    Soak((sha(), sha("9")), "b" * 64, "c" * 64, NOON, healthy_since=NOON),
    Soak((sha("8"),), "8" * 64, "c" * 64, NOON, NOON, ended="rolled-back"),
)
KINDS = frozenset(
    {
        GroupKind("apps", "Deployment"),
        GroupKind("", "ConfigMap"),
        GroupKind("", "Namespace"),
        GroupKind("rbac.authorization.k8s.io", "ClusterRole"),
    }
)
WAITS = DependencyWait("e" * 40, "c" * 64, NOON, (Obstacle("infra", "it is degraded", "anneal status infra"),))


def full() -> State:
    return blank(
        path="deploy",
        commit=sha(),
        reads="b" * 64,
        settings="c" * 64,
        digest="d" * 64,
        drift_due=NOON,
        reads_paths=("deploy", "deploy/api.yaml"),
        attempt=Attempt(sha("e"), "b" * 64, "c" * 64, TOKEN, NOON),
        status=RunStatus("failed", NOON, {"created": 3}, ("Deployment/shop/api",), "no", 2, NOON, "transient", "nobody", refusal=REFUSAL),
        health=TargetHealth(
            "degraded", NOON, NOON, ("Deployment/shop/api: 0 of 2 replicas available",), ("Service/shop/api: no address",), (API,)
        ),
        waiting=WaitingFor(sha("e"), "everything", NOON),
        rollout=Progress(
            sha("e"),
            "d" * 64,
            NOON,
            steps=(
                StepRecord("first", "migrate", "Job/shop/migrate", "Recreate", NOON, NOON, "done", mark="u-1"),
                StepRecord(
                    "then", "api", "Deployment/shop/api", "CreateOrUpdate", NOON, message="1 of 3", stood=(Stalled("5f" * 6, NOON),)
                ),
                StepRecord("then", "web", "Deployment/shop/web", "Canary", NOON, mark="hold 0", share=25),
            ),
            id="0f" * 6,
        ),
        held=HeldPlan("h1", ("deletes 12 of 20",), (("prune", "apps/Deployment/shop/api", "u"),), sha("e"), "b" * 64, "c" * 64, NOON),
        approval=Approval("h1", "b" * 64, "c" * 64, (("prune", "apps/Deployment/shop/api", "u"),), "ada", NOON),
        pin=Pin(sha("f"), "b" * 64, "ada", "rollback", NOON),
        suspend=Suspend("ada", "maintenance", NOON, NOON),
        requested=NamedRequest("ada", NOON, force=True),
        awaits=WAITS,
        orphans=(Orphan("u-9", API, NOON), Orphan("u-10", API, NOON, unmarked=True, until=NOON)),
        declared=(API, Identity("", "Namespace", "", "shop"), Identity("rbac.authorization.k8s.io", "ClusterRole", "", "system:x")),
        deliveries=(Delivery("1", "github", "refs/heads/main", sha(), "ada", NOON),),
        history=(
            Run("r1", "push", "applied", NOON, sha(), "Add api", "Ada", "ada", {"created": 3}, 1.25, "", "", ("Deployment/shop/api",)),
        ),
        soaks=SOAKS,
        commit_statuses=COMMIT_STATUSES,
        pull_requests=(RecordedPullRequest(12, "345", "robot", "2" * 64),),
        drift=(Drift(API, "spec.replicas", "3", "5", "kubectl-scale"),),
        kinds=KINDS,
        namespaces=frozenset({"shop", "shop-jobs"}),
    )


def as_format_1(body: dict[str, Any]) -> dict[str, Any]:
    """Return a record as format 1 wrote it: commit and repository stand in the groups, no path, and nothing of Jobs."""
    data = {
        key: text
        for key, text in body["data"].items()
        if key not in ("commit", "repository", "path", "ran.json", "health.json", "apart.json")
    }
    target = json.loads(data["target.json"]) | {"repository": body["data"].get("repository", ""), "format": 1}
    applied = json.loads(data.get("applied.json", "{}")) | {key: body["data"][key] for key in ("commit",) if key in body["data"]}
    data |= {"target.json": json.dumps(target)} | ({"applied.json": json.dumps(applied)} if applied else {})
    summary = json.loads(body["metadata"]["annotations"][SUMMARY])
    summary["home"] = home_of(target["repository"], target.get("installation", "default"), target["clusterUid"], 1)
    annotations = body["metadata"]["annotations"] | {SUMMARY: json.dumps(summary, separators=(",", ":"))}
    return body | {"data": data, "metadata": body["metadata"] | {"annotations": annotations}}


shas = st.sampled_from([sha(digit) for digit in "0af"] + ["9" * 64])
times = st.integers(0, 4_000_000_000).map(stamp)
texts = st.text(max_size=60)
words = st.sampled_from(["applied", "failed", "push", "drift"])
counts = st.dictionaries(words | words.map("to {}".format), st.integers(0, 10**6), max_size=4)
labels = st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
kinds = st.builds(GroupKind, st.sampled_from(["", "apps", "x.example.com"]), st.sampled_from(["ConfigMap", "Deployment", "Job2"]))
names = st.sampled_from(["api", "system:node", "a.b.c", "ünïcode", "name(1)"])
identities = st.builds(Identity, st.sampled_from(["", "apps"]), st.sampled_from(["Role", "Pod"]), st.one_of(st.just(""), labels), names)
keys = st.tuples(st.sampled_from(["prune", "recreate"]), identities.map(str), texts)
tokens = st.builds(lambda uid, count: f"{uid}.{count}", st.uuids(), st.integers(0, 2**31 - 1))
runs = st.builds(
    Run,
    id=texts,
    trigger=words,
    outcome=words,
    started=times,
    commit=shas,
    subject=texts,
    author=texts,
    actor=texts,
    counts=counts,
    duration=st.floats(0, 10**6),
    message=st.text(max_size=6000),
    changed=st.lists(texts, max_size=5).map(tuple),
    times=st.integers(1, 10**6),
)


def _some(each: st.SearchStrategy[Any], most: int = 4) -> st.SearchStrategy[Any]:
    return st.lists(each, max_size=most).map(tuple)


def _maybe(form: Any, **parts: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.builds(form, **parts))


states = st.builds(
    State,
    target=st.just("shop"),
    installation=labels,
    cluster_uid=texts,
    repository=texts.filter(bool),
    path=texts,
    commit=shas,
    reads=shas,
    settings=shas,
    digest=shas,
    reads_paths=_some(texts),
    attempt=_maybe(Attempt, commit=shas, reads=shas, settings=shas, token=tokens, since=times, recovery=st.booleans()),
    status=st.builds(
        RunStatus, phase=words, since=times, counts=counts, unhealthy=_some(texts), message=texts, failures=st.integers(0, 99)
    ),
    health=st.builds(
        TargetHealth,
        state=st.sampled_from(["healthy", "degraded"]),
        since=times,
        judged=times,
        worst=_some(texts),
        notes=_some(texts),
        apart=st.one_of(st.none(), _some(identities)),
    ),
    held=_maybe(HeldPlan, id=texts, reasons=_some(texts), changes=_some(keys, 200), commit=shas, reads=shas, settings=shas, since=times),
    approval=_maybe(Approval, id=texts, reads=shas, settings=shas, changes=_some(keys), by=texts, at=times),
    pin=_maybe(Pin, commit=shas, away=shas, by=texts, reason=texts, at=times),
    suspend=_maybe(Suspend, by=texts, reason=texts, until=times, at=times),
    requested=_maybe(NamedRequest, by=texts, at=times, force=st.booleans(), drift=st.booleans()),
    awaits=_maybe(
        DependencyWait, commit=shas, settings=shas, since=times, on=_some(st.builds(Obstacle, target=labels, why=texts, fix=texts))
    ),
    orphans=_some(st.builds(Orphan, uid=texts, identity=identities, since=times)),
    declared=_some(identities, 200),
    deliveries=_some(st.builds(Delivery, id=texts, provider=texts, ref=texts, hint=texts, actor=texts, received=texts)),
    history=_some(runs),
    drift=_some(st.builds(Drift, identity=identities, path=texts, declared=texts, live=texts, manager=texts)),
    kinds=st.frozensets(kinds, max_size=5),
    namespaces=st.frozensets(labels, max_size=5),
)
