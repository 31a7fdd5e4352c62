"""What believing each key of a record, summary, Lease and heartbeat can do at worst: delay, whatever stands there.

Targets of two repositories on one cluster, one of which follows another. Each key of their ConfigMaps and Leases is written in turn: what
would help an attacker most, other targets' names, other types, sizes. The API server's own log is the judge: what was deleted, what was
written outside of the target's namespaces, and which commits' values ever lived. SECURITY.md has the same table in words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from handler.model.event import Delivery
from handler.model.names import GroupKind, Identity, applyset_id, state_name
from handler.model.outside_inputs import KnownChart
from handler.model.result import Outcome
from handler.state import configmap, heartbeat, lease_record
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
    Ran,
    RecordedInstance,
    Refusal,
    Run,
    RunStatus,
    State,
    StepRecord,
    Suspend,
    TargetHealth,
    WaitingFor,
)
from handler.state.record_values import DependencyWait, Obstacle, RecordedCommitStatus, RecordedPullRequest, RecordName
from handler.state.soak import Soak
from tests.unit.engine.forged_world import BANK, DATABASE, FAR, LONG_AGO, MINE, NAMES, STATES, STRAY, WEB, ZERO, World, document
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow


@pytest.fixture
def world() -> World:
    return World()


def uid(world: World, identity: Identity) -> str:
    live = world.server.store.get(identity)
    assert live
    return str(live.body["metadata"]["uid"])


def _removing(world: World, *identities: Identity) -> tuple[tuple[str, str, str], ...]:
    return tuple(("prune", str(each), uid(world, each)) for each in identities)


def _away(world: World, state: State) -> str:
    """What holds a pin while the branch stays as it is."""
    return world.handler.dependencies(state.target).preparer.reads_at(world.head)


def _applied(world: World, commit: str) -> Run:
    return Run("r1", "push", "applied", LONG_AGO, commit, digest="0" * 16)


FORGED: dict[str, Callable[[World, State], Sequence[Any]]] = {
    "target": lambda w, s: ["vic", "", "x" * 300],
    "installation": lambda w, s: ["second", ""],
    "cluster_uid": lambda w, s: ["u-9", ""],
    "repository": lambda w, s: [BANK.url, "", "x" * 4096],
    "path": lambda w, s: ["vic", "..", ""],
    "format": lambda w, s: [1, 4, 99],
    "commit": lambda w, s: [w.strange, w.old, ""],
    "reads": lambda w, s: [ZERO, ""],
    "settings": lambda w, s: [ZERO, ""],
    "digest": lambda w, s: [ZERO, ""],
    "drift_due": lambda w, s: [LONG_AGO, FAR],
    "reads_paths": lambda w, s: [("vic",), ("x" * 4096,) * 50, ()],
    "attempt": lambda w, s: [
        Attempt(commit, s.reads, settings, "u.1", LONG_AGO, back, recovery)
        for commit in (w.strange, w.old)
        for settings in (s.settings, ZERO)
        for back, recovery in (("", False), (w.strange, True))
    ],
    "status": lambda w, s: [
        RunStatus("applied", LONG_AGO, message="x" * 4000, unhealthy=("x" * 4000,) * 20),
        RunStatus("failed", LONG_AGO, next_try=FAR, code="x", who="nobody"),
        RunStatus("failed", who="author", refusal=Refusal(w.head, ZERO, s.reads, again=FAR)),
        RunStatus(
            "failed", who="author", refusal=Refusal(w.head, ZERO, facts=(Fact("vic"), Fact("db", "ConfigMap", "v1", "configmaps", "bank")))
        ),
        RunStatus("pruning"),
        RunStatus("waiting", next_try=LONG_AGO),
    ],
    "health": lambda w, s: [
        TargetHealth("healthy", LONG_AGO, FAR),
        TargetHealth("degraded", FAR, LONG_AGO, ("x" * 4000,) * 20, apart=(WEB, DATABASE), closed=(WEB, DATABASE)),
    ],
    "waiting": lambda w, s: [WaitingFor(w.strange, "apply", LONG_AGO, over=True), WaitingFor(w.head, "apply", FAR)],
    "rollout": lambda w, s: [
        Progress(w.head, ZERO, LONG_AGO, outcome="failed"),
        Progress(w.strange, s.digest, LONG_AGO, LONG_AGO, "done", (StepRecord("g", "s", str(DATABASE), "DeleteIfExist"),)),
    ],
    "held": lambda w, s: [
        HeldPlan("h1", ("x" * 4000,), _removing(w, MINE, DATABASE, WEB), commit, s.reads, s.settings, LONG_AGO)
        for commit in (w.head, w.strange)
    ],
    "approval": lambda w, s: [Approval("h1", s.reads, s.settings, _removing(w, MINE, DATABASE, WEB, STRAY), "mallory", LONG_AGO)],
    "pin": lambda w, s: [
        *(
            Pin(commit, away, "mallory", "x" * 300, LONG_AGO, automatic)
            for commit in (w.strange, "9" * 40)
            for away in ("", _away(w, s))
            for automatic in (False, True)
        ),
        Pin(w.old),  # it is on the branch: who writes records may pin there
    ],
    "suspend": lambda w, s: [Suspend("mallory"), Suspend("mallory", until=FAR), Suspend("mallory", until=LONG_AGO)],
    "requested": lambda w, s: [NamedRequest("mallory", LONG_AGO, force=True, drift=True)],
    "awaits": lambda w, s: [DependencyWait(w.head, s.settings, LONG_AGO, (Obstacle("vic", "x" * 4000, "anneal retire vic --prune"),))],
    "renderer": lambda w, s: ["helm", "nix"],
    "installed": lambda w, s: [ZERO],
    "charts": lambda w, s: [(KnownChart("https://charts.example.com", "web", "1", "1.0.0", "sha256:" + ZERO, w.head),)],
    "orphans": lambda w, s: [
        tuple(Orphan(uid(w, each), each, LONG_AGO, sibling, unmarked, until) for each in (MINE, WEB, DATABASE, STRAY))
        for sibling, unmarked, until in (("", True, LONG_AGO), ("", True, ""), ("vic", True, LONG_AGO), ("", False, LONG_AGO))
    ],
    "declared": lambda w, s: [(), (DATABASE, MINE, STRAY), tuple(replace(WEB, name=f"x{n}") for n in range(5000))],
    "ran": lambda w, s: [(Ran(WEB, ZERO), Ran(DATABASE, ZERO, open=True))],
    "deliveries": lambda w, s: [(Delivery("d", "github", "refs/heads/main", w.strange, "mallory", LONG_AGO),) * 20],
    "history": lambda w, s: [(_applied(w, w.head), _applied(w, w.strange)), (_applied(w, w.strange),) * 2, ()],
    "soaks": lambda w, s: [(Soak((w.strange,), s.reads, s.settings, LONG_AGO, "", LONG_AGO),)],
    "commit_statuses": lambda w, s: [(RecordedCommitStatus(w.strange, "success", "x" * 300),) * 20],
    "pull_requests": lambda w, s: [(RecordedPullRequest(1, "1", "mallory", ZERO),)],
    "drift": lambda w, s: [(Drift(DATABASE, "", "", "x"), Drift(WEB, "data.key", "x", "y", "kubectl"))],
    "kinds": lambda w, s: [frozenset(), frozenset(GroupKind("", kind) for kind in ("ConfigMap", "Secret", "Namespace", "Pod"))],
    "namespaces": lambda w, s: [frozenset(), frozenset({"bank", "elsewhere", "kube-system"})],
    "former": lambda w, s: [RecordName("vic", STATES, LONG_AGO), RecordName("shop", "elsewhere"), RecordName("nobody", STATES)],
    "renamed_from": lambda w, s: ["vic"],
    "renamed_to": lambda w, s: [RecordName("vic", STATES), RecordName("shop", "elsewhere")],
    "instance": lambda w, s: [RecordedInstance(DATABASE, "u-1")],
}
"""By field of `State`: what is written into the record of `shop`, one value after the other."""
CHOOSING = ("commit", "attempt", "status", "waiting", "rollout", "held", "pin", "history", "soaks", "awaits", "deliveries")
"""Those that name commits: what a target that follows another deploys is chosen in its own way, all else is judged as anywhere."""

TYPES: tuple[Any, ...] = (None, -1, "x" * 70_000, [{}], {"commit": None})
KEYS = (*configmap._PLAIN, *(f"{key}.json" for key in configmap._KEYS))
ANNOTATIONS: dict[str, Sequence[Any]] = {
    configmap.SUMMARY: ('{"phase": "applied"}', "{", "x" * 100_000),
    configmap.KINDS: ("", "ConfigMap,Secret,Namespace,Node", "../..", None),
    configmap.NAMESPACES: ("", "bank,elsewhere,kube-system", "../..", None),
    configmap.TOOLING: ("kubectl/v1", "", None),
    configmap.INSTANCE: ("u-1//ConfigMap:bank/db", "x" * 1000),
}
LABELS: dict[str, Sequence[Any]] = {
    configmap.ID: (applyset_id(state_name("vic"), STATES), None),
    configmap.TARGET: ("vic", None),
    configmap.INSTALLATION: ("second", None),
    configmap.RENAMED_FROM: ("vic", None),
}
LEASES: dict[str, Sequence[Any]] = {
    "holderIdentity": ("mallory", ""),
    "leaseDurationSeconds": (1, 2**31 - 1),
    "leaseTransitions": (0, 2**31 - 1),
    "renewTime": ("2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"),
    lease_record.REQUESTED: ("x" * 10_000,),
}
BEATS: dict[str, Sequence[Any]] = {
    heartbeat._SERVERS: ('{"mallory": {"version": "9", "renewed": "2999-01-01T00:00:00.000000Z"}}', "{", "x" * 100_000),
    heartbeat._TARGETS: ('{"shop": ["mallory", 32503680000], "vic": ["mallory", 0]}', "[]", "x" * 100_000),
    heartbeat._HEALTH: ("2999-01-01T00:00:00.000000Z 99999999", "x"),
    heartbeat._SINCE: ("2001-01-01T00:00:00.000000Z", "x"),
}


METADATA = [
    (part, key, value)
    for part, table in (("annotations", ANNOTATIONS), ("labels", LABELS))
    for key, values in table.items()
    for value in values
]


def test_every_key_of_a_record_is_forged() -> None:
    assert FORGED.keys() == {each.name for each in fields(State)}


@pytest.mark.parametrize(("name", "keys"), [("shop", FORGED), ("prod", CHOOSING)], ids=["shop", "prod"])
def test_a_forged_key_deletes_nothing_writes_nothing_outside_and_deploys_no_commit_of_another_branch(
    world: World, name: str, keys: Iterable[str]
) -> None:
    state = world.handler.store(world.handler.target(name)).read().state
    assert state

    @each_row(("key", "value"), [(key, value) for key in keys for value in FORGED[key](world, state)])
    def harmless(key: str, value: Any) -> None:
        body = configmap.encode(replace(state, **{key: value}), STATES, "anneal/v1")
        with world.edited("configmaps", name, {**body, "metadata": {"annotations": body["metadata"]["annotations"]}}):
            world.everything()
            world.judge()

    harmless()


def test_a_key_of_another_type_or_size_is_refused_and_does_no_harm(world: World) -> None:
    @each_row("key", KEYS)
    @each_row("value", TYPES)
    def harmless(key: str, value: Any) -> None:
        text = value if isinstance(value, str) and key in configmap._PLAIN else json.dumps(value)
        with world.edited("configmaps", "shop", {"data": {key: text}}):
            for trigger in ("tick", "drift"):
                world.run("shop", trigger)
            world.judge()

    harmless()


@each_row(("part", "key", "value"), METADATA)
def test_forged_metadata_of_a_record_does_no_harm(world: World, part: str, key: str, value: Any) -> None:
    with world.edited("configmaps", "shop", {"metadata": {part: {key: value}}}):
        world.everything()
        world.judge()


@each_row("key", LEASES)
def test_a_forged_lease_delays_a_run(world: World, key: str) -> None:
    for value in LEASES[key]:
        patch = {"metadata": {"annotations": {key: value}}} if "/" in key else {"spec": {key: value}}
        with world.edited("leases", "shop", patch):
            for name in NAMES:
                world.run(name, "drift")
            world.judge()


@each_row("key", BEATS)
def test_a_forged_heartbeat_vouches_for_health_alone(world: World, key: str) -> None:
    handler = world.handler
    for value in BEATS[key]:
        beat = heartbeat.Heartbeat(handler.objects(handler.target("shop")), STATES, "default")
        beat.renew(heartbeat.Signs("one", "1", {"shop": 1.0}, (1.0, 60.0)))
        with world.edited("leases", "heartbeat.default", {"metadata": {"annotations": {key: value}}}):
            beat.read()
            beat.renew(heartbeat.Signs("one", "1", {"shop": 1.0}, (1.0, 60.0)))
            world.everything()
            world.judge()


@pytest.mark.parametrize("copied", [False, True], ids=["plain", "approved"])
def test_two_records_that_name_each_other_move_nothing(world: World, copied: bool) -> None:
    former, renamed = ({"name": name, "namespace": STATES, "at": LONG_AGO} for name in ("vic", "shop"))
    before = {each: world.server.store.get(each) for each in (DATABASE, STRAY, MINE)}
    approval = {"approval.json": json.dumps({"id": "h1", "reads": ZERO, "settings": ZERO, "changes": [], "by": "mallory", "at": LONG_AGO})}
    with (
        world.edited("configmaps", "shop", {"data": {"former.json": json.dumps(former), **(approval if copied else {})}}),
        world.edited("configmaps", "vic", {"data": {"renamedTo.json": json.dumps(renamed)}}),
    ):
        world.everything()
        world.judge()
        assert {each: world.server.store.get(each) for each in before} == before


def test_what_git_itself_takes_out_is_seen_to_go(world: World) -> None:
    """The judge would see it."""
    sha = world.host.commit({"shop/web.json": document(WEB, "2"), "vic/db.json": document(DATABASE, "2")})
    world.host.push(sha)
    assert world.run("shop").outcome is Outcome.APPLIED
    with pytest.raises(AssertionError, match="configmaps/own"):
        world.judge()
