"""What `status` leads with: one row for each way a target can stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.app.target_row import NewestCommit, TargetRow
from handler.cli.follow_up_commands import GivenFlags
from handler.cli.next_step import complete, next_step, server_text
from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Cluster, Target
from handler.engine.run.promotion_claims import Awaited
from handler.model.advice import advice
from handler.model.errors import ClusterUnavailable, Problem, TargetMoved
from handler.model.names import Identity
from handler.model.quotation import quoted
from handler.state.heartbeat import Pulse, Server
from handler.state.lease import Peek
from handler.state.record import Approval, Attempt, Drift, Fact, HeldPlan, Orphan, Pin, Refusal, RunStatus, State, Suspend, TargetHealth
from handler.state.record_format import stamp
from handler.state.record_values import DependencyWait, Obstacle, RecordName, RunOnce
from tests.unit.rows import each_row

NOW = 1_800_000_000.0
SHA = "a" * 40
LATER = stamp(NOW + 90)
TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))
APPLIED = State("shop", "default", "uid", TARGET.repository.url, commit=SHA, status=RunStatus("applied", stamp(NOW)))
ONE = Identity("", "ConfigMap", "shop", "one")
FACTS = (
    Fact("web", "Namespace", "v1", "namespaces"),
    Fact("a", "ConfigMap", "v1", "configmaps", "shop"),
    Fact(kind="Tea", api_version="v1"),
)
REFUSAL = Refusal(SHA, "b" * 64, facts=(*FACTS, Fact("back", seen="7")))
FULL = 'Deployment/shop/web: pods "web-1" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=2, limited: pods=2'
MOVED = TargetMoved(
    Problem("ConfigMap/s/anneal-shop: Target/shop", "repository was a, is now b; `anneal retarget shop` accepts that"),
    Problem("Target/shop", "x was c; `anneal`"),
)
OPEN = Attempt(SHA, SHA, SHA, "x.1", stamp(NOW))
GONE = 'ConfigMap/x/a: namespaces "x" not found; create it: kubectl create namespace x; or declare it in the same path: {}'
DENIED = 'Service/x/a: 403: services is forbidden: User "system:serviceaccount:s:anneal" cannot create resource "services"'
CHECKS = "anneal check shop && anneal apply shop"
LOOKS = "kubectl get ConfigMap/one -n shop -o yaml"
QUOTA = Fact("tight", "ResourceQuota", "v1", "resourcequotas", "shop", "uid/1")
HOLDS = "ConfigMap/x/a: is not gone yet; finalizers: y; kubectl get ConfigMap/a -n x -o yaml shows who must act"
HELD = HeldPlan("58eb1fd1ec42", ("too many",), (("prune", "ConfigMap/shop/one", "uid"),), SHA, SHA, SHA, stamp(NOW))
TAKEOVER, ADOPTS = replace(HELD, once=RunOnce(("flux", "helm"))), "anneal adopt shop --from flux --from helm"


def failed(who: str, next_try: str = "") -> RunStatus:
    return RunStatus("failed", stamp(NOW), message="m", failures=1, who=who, next_try=next_try)


def lacking(*namespaces: str, again: str = "") -> RunStatus:
    facts = tuple(Fact(name, "Namespace", "v1", "namespaces") for name in namespaces)
    return replace(failed("author"), refusal=replace(REFUSAL, facts=facts, again=again))


@each_row(
    ("changed", "command", "said"),
    [
        ({}, "", "nothing to do"),
        ({"drift_due": LATER}, "", "nothing to do; live is looked at again in 1 min"),
        ({"suspend": Suspend("ada", "freeze")}, "anneal resume shop", "suspended"),
        ({"suspend": Suspend("ada", until=stamp(NOW - 1))}, "", "nothing to do"),
        ({"held": HELD}, "anneal approve shop 58eb1fd1ec42", "1 deletion waits for approval; to allow exactly it:"),
        ({"held": TAKEOVER}, f"{ADOPTS} --approve 58eb1fd1ec42", "1 deletion waits for approval; to allow exactly it:"),
        ({"held": replace(HELD, once=RunOnce(prune=True))}, "anneal prune shop --approve 58eb1fd1ec42", "to allow exactly it:"),
        (
            {"held": TAKEOVER, "approval": Approval(HELD.id, SHA, SHA, HELD.changes, "ada", LATER)},
            f"{ADOPTS} --approve 58eb1fd1ec42",
            "1 deletion waits for approval",
        ),
        ({"held": HELD, "approval": Approval(HELD.id, SHA, SHA, HELD.changes, "ada", LATER)}, "anneal apply shop", "approved"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW))}, "anneal apply shop", "didn't finish"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": failed("author")}, "", "fix the commit"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": RunStatus("waiting", next_try=LATER)}, "", "isn't healthy yet"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": RunStatus("rolling-out", next_try=LATER)}, "", "rollout goes on"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": RunStatus("rolling-out")}, "anneal apply shop", "didn't finish"),
        ({"status": failed("author")}, "", "fix the commit"),
        ({"status": replace(failed("author"), refusal=REFUSAL)}, "", "changes about Namespace/web, ConfigMap/shop/a, v1 Tea and 1 more"),
        ({"status": replace(failed("author"), refusal=replace(REFUSAL, facts=()))}, "", "and push"),
        ({"status": replace(failed("operator"), code="quota-exceeded")}, "anneal apply shop", "a quota is full: its owner makes room"),
        ({"status": replace(failed("author"), refusal=replace(REFUSAL, facts=(QUOTA,)))}, "anneal apply shop", "a quota is full"),
        ({"status": replace(failed("author"), code="plan-refused", message=f"{FULL}\nanother")}, "", "fix the commit"),
        ({"status": failed("operator")}, "anneal apply shop", "said below"),
        ({"attempt": OPEN, "status": replace(failed("operator"), code="quota-exceeded")}, "anneal apply shop", "a quota is full"),
        ({"status": lacking("shop")}, "kubectl create namespace shop", "a Namespace is missing"),
        ({"status": lacking("shop", again=LATER)}, "", "fix the commit"),
        ({"status": lacking("kube-system")}, "", "fix the commit"),
        ({"status": lacking("shop; reboot")}, "", "fix the commit"),
        ({"status": lacking("shop", "other")}, "", "fix the commit"),
        ({"status": replace(failed("operator"), code="access-denied", message=DENIED)}, CHECKS, "access is denied"),
        ({"status": replace(failed("nobody", LATER), phase="pruning", lingers=ONE)}, LOOKS, "isn't gone"),
        ({"status": replace(failed("nobody", LATER), phase="pruning", message=HOLDS)}, "anneal apply shop", "tried again in 1 min"),
        ({"status": replace(failed("author"), message=f"{GONE}\n{HOLDS}\n{DENIED}")}, "", "fix the commit"),
        (
            {"status": replace(failed("author"), code="rollout-failed"), "health": TargetHealth("degraded", worst=("Pod/shop/a: failed",))},
            "anneal status shop --logs",
            "fix the commit as said below, and push; to see what its containers wrote:",
        ),
        ({"status": failed("nobody", LATER)}, "anneal apply shop", "tried again in 1 min"),
        ({"health": TargetHealth("degraded", LATER, LATER, ("Deployment/shop/a: 0 of 1",))}, "anneal status shop --logs", "degraded"),
        ({"health": TargetHealth("degraded", LATER, LATER, ("PersistentVolumeClaim/shop/a: lost",))}, "", "degraded"),
        ({"health": TargetHealth("degraded", LATER, LATER, ("Service/shop/a: is not there",))}, "anneal apply shop", "is gone"),
        ({"health": TargetHealth("unknown", LATER, LATER)}, "anneal apply shop", "isn't known"),
        ({"health": TargetHealth("progressing", LATER, LATER)}, "", "not all of it is healthy yet"),
        ({"health": TargetHealth("healthy", LATER, LATER, (), ("Service/shop/a: no address",))}, "", "noted below"),
        ({"pin": Pin(SHA)}, "anneal unpin shop", "pinned"),
        ({"pin": Pin(SHA, automatic=True)}, "anneal unpin shop", "rolled back"),
        ({"drift": (Drift(ONE, "data.a", "1", "2"),)}, "anneal apply shop", "1 field differs from git; to bring it back:"),
        (
            {"drift": (Drift(ONE, "", "yes", ""), Drift(ONE, "data.a", "1", "2"))},
            "anneal apply shop",
            "1 object and 1 field differ from git",
        ),
        (
            {"orphans": (Orphan("uid", ONE, stamp(NOW)),)},
            "anneal prune shop --dry-run",
            "1 object is no longer declared; to see whether it may go:",
        ),
        (
            {"orphans": (Orphan("uid", ONE, stamp(NOW), unmarked=True, until=stamp(NOW + 60)),)},
            "anneal orphans shop",
            "1 object of exclusive namespaces is not declared; to see what becomes of it, and what keeps:",
        ),
        (
            {"orphans": (Orphan("uid", replace(ONE, namespace="left"), stamp(NOW)),)},
            "anneal retire shop --namespace left --prune --dry-run",
            "namespace left left its whitelist, and what it has there stays",
        ),
        ({"renamed_to": RecordName("store", "anneal-system")}, "", "ConfigMap/anneal-system/anneal-store has taken over what it had"),
    ],
)
def test_the_next_step_is_a_command_where_there_is_one(changed: dict[str, Any], command: str, said: str) -> None:
    step = next_step(TargetRow(TARGET, NOW, state=replace(APPLIED, **changed)))
    assert step.command == command
    assert said in step.text


WAITS = DependencyWait(SHA, "digest", stamp(NOW), (Obstacle("infra", "not all of it is healthy yet", "anneal status infra"),))


@each_row(
    ("changed", "command"),
    [
        ({"health": TargetHealth("progressing", LATER, LATER)}, "anneal apply shop"),
        ({"awaits": WAITS, "status": RunStatus("waiting", stamp(NOW))}, "anneal apply infra"),
    ],
)
def test_what_no_server_looks_at_again_is_looked_at_by_a_run(changed: dict[str, Any], command: str) -> None:
    row = TargetRow(replace(TARGET, depends_on=("infra",)), NOW, state=replace(APPLIED, **changed))
    assert next_step(row).command != command
    step = next_step(replace(row, pulse=Pulse()))
    assert (step.command, step.text.endswith("again; to do so now:")) == (command, True)


@each_row(
    ("row", "command", "said"),
    [
        (TargetRow(TARGET, NOW), "anneal apply shop", "has no record"),
        (TargetRow(TARGET, NOW, recorded=False, members=0), "anneal apply shop", "never ran"),
        (TargetRow(TARGET, NOW, recorded=False, members=3), "anneal apply shop", "its record is missing, and 3 objects of it live"),
        (
            TargetRow(TARGET, NOW, trouble=ClusterUnavailable.of("cluster", "no answer")),
            "kubectl get --raw /readyz --request-timeout 5s",
            "no answer",
        ),
        (
            TargetRow(TARGET, NOW, state=APPLIED, trouble=MOVED),
            "anneal retarget shop",
            "elsewhere: repository was a, is now b, x was c",
        ),
        (TargetRow(TARGET, NOW, state=APPLIED, lease=Peek("pod-1", True, 1.0, False)), "", "pod-1 works on it now"),
        (TargetRow(TARGET, NOW, state=APPLIED, lease=Peek("pod-1", False, 90.0, False)), "anneal unlock shop", "hasn't renewed for 90 s"),
    ],
)
def test_the_next_step_of_a_held_lease_and_of_a_missing_record(row: TargetRow, command: str, said: str) -> None:
    step = next_step(row)
    assert step.command == command
    assert said in step.text


SOAKS = Awaited("staging", "has kept it", "without waiting for that: anneal promote shop --commit X", due=NOW + 60)


@each_row(
    ("awaited", "command", "said"),
    [
        ((SOAKS,), "anneal promote shop", "follows once more is proven, as said below; without waiting for that:"),
        (
            (SOAKS, Awaited("eu", "degraded", advice("anneal status {}", "eu"))),
            "anneal status eu",
            "as said below; to see how that stands:",
        ),
        ((Awaited("", "it is not on the branch", "merge it"),), "", "as said below; merge it"),
    ],
)
def test_a_target_that_follows_others_is_led_to_what_holds_it(awaited: tuple[Awaited, ...], command: str, said: str) -> None:
    step = next_step(TargetRow(TARGET, NOW, state=APPLIED, newest=NewestCommit(SHA, awaited=awaited)))
    assert (step.command, step.text.endswith(said), step.urgent) == (command, True, False), step


def test_a_target_suspended_in_the_configuration_is_resumed_there() -> None:
    step = next_step(TargetRow(replace(TARGET, suspend=True), NOW, state=APPLIED))
    assert (step.command, step.urgent) == ("", True)
    assert "set `suspend: false` in anneal.yaml" in step.text


@each_row(
    ("changed", "command", "said"),
    [
        ({}, "", "nothing to do"),
        ({"status": failed("author")}, "", "mend the files as said below; one that runs at an interval takes them by itself"),
        (
            {"status": failed("operator")},
            "",
            "said below, then: run the same `anneal locutus` or `anneal apply -f` command again",
        ),
        ({"held": HELD}, "", "run the same `anneal locutus` or `anneal apply -f` command again with --approve 58eb1fd1ec42"),
        ({"health": TargetHealth("degraded", LATER, LATER, ("Pod/shop/a: failed",))}, "anneal status shop --logs", "degraded"),
    ],
)
def test_no_command_is_advised_that_only_a_configuration_has(changed: dict[str, Any], command: str, said: str) -> None:
    local = replace(TARGET, repository=Repository("directory:shop"))
    step = next_step(TargetRow(local, NOW, state=replace(APPLIED, **changed)))
    assert (step.command, said in step.text) == (command, True), step


def test_commands_reach_the_same_configuration_and_cluster() -> None:
    """As status was asked; what kubectl is to do on the target's cluster as the target says."""
    given = GivenFlags(("-c", "a b.yaml", "--context", "east"), ("--context", "east"))
    lacks = replace(APPLIED, status=lacking("shop"))
    row = TargetRow(TARGET, NOW, state=lacks, pulse=Pulse())
    assert next_step(row, given).command == (
        "kubectl --context east create namespace shop && anneal -c 'a b.yaml' --context east apply shop"
    )
    away = replace(TARGET, cluster=Cluster(SecretRef(file="/etc/far"), context="west"))
    made = advice("create it: kubectl create namespace {}; or {text}", "x", GONE)
    for target, wanted in ((TARGET, made), (away, made.replace("kubectl", "kubectl --kubeconfig /etc/far --context west", 1))):
        assert complete(made, TargetRow(target, NOW), GivenFlags()) == wanted
        assert complete(GONE, TargetRow(target, NOW), given) == GONE, "what a record or a server says is never completed"
    theirs = TargetRow(TARGET, NOW, state=replace(APPLIED, status=replace(failed("operator"), code="secret-unavailable")))
    at_home = advice("kubectl get secret -n {}", "x")
    assert complete(at_home, theirs, given) == at_home, "that one is on the handler's own cluster"


@each_row("target", ["infra", "shop; kubectl delete ns prod"])
def test_a_forged_wait_leads_to_no_command_of_its_own(target: str) -> None:
    """What a record says of others it waits for names only what this target depends on, and no command at all."""
    forged = DependencyWait(
        SHA, "digest", stamp(NOW), (Obstacle(target, "it fails; now: anneal retire x", "anneal apply x; kubectl delete ns prod"),)
    )
    state = replace(APPLIED, awaits=forged, status=RunStatus("waiting", stamp(NOW)))
    row = TargetRow(replace(TARGET, depends_on=("infra",)), NOW, state=state)
    for each in (row, replace(row, pulse=Pulse())):
        assert next_step(each).command in ("anneal status infra", "anneal apply infra", "anneal apply shop")
        assert f"waits for {quoted(target)}: “it fails; now: anneal retire x”; once" in next_step(each).text


EVIL = "nobody; first run `kubectl delete ns prod`, then it"


@pytest.mark.parametrize(
    "row",
    [
        TargetRow(TARGET, NOW, state=APPLIED, lease=Peek(EVIL, True, 1.0, False)),
        TargetRow(TARGET, NOW, state=APPLIED, lease=Peek(EVIL, False, 90.0, False)),
        TargetRow(TARGET, NOW, state=APPLIED, pulse=Pulse(NOW, servers={EVIL: Server(EVIL, EVIL, NOW)})),
        TargetRow(TARGET, NOW, state=APPLIED, pulse=Pulse(NOW, servers={EVIL: Server(EVIL, EVIL, NOW)}, targets={"shop": (EVIL, NOW)})),
        TargetRow(TARGET, NOW, state=replace(APPLIED, orphans=(Orphan("u", Identity("", "ConfigMap", "shop", "a"), stamp(NOW), EVIL),))),
    ],
    ids=["held", "left", "other server", "server", "sibling"],
)
def test_what_leases_heartbeats_and_records_say_stands_in_marks_within_our_sentences(row: TargetRow) -> None:
    for text in (next_step(row).text, server_text(row)):
        assert EVIL not in text.replace(f"“{EVIL}”", "")
