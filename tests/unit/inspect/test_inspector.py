"""A look at a target: what its gap and its orphans say, how often it is made for many who ask, and that it writes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.config.settings import HoldAbove, Prune, Settings, Target
from handler.engine.run.dependencies import Dependencies
from handler.inspect.gap import Gap
from handler.inspect.inspector import Inspector
from handler.inspect.look import Ask
from handler.inspect.orphans import Orphans
from handler.inspect.plan_questions import AT_ONCE, cut, facts
from handler.inspect.shared_looks import SharedLooks
from handler.model.errors import ClusterUnavailable
from handler.model.event import Job
from handler.model.result import Outcome
from tests.fakes.apiserver.connection import Call, Reply, straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, SHOP, cluster, engine, pushed, state_of
from tests.fakes.git_host import GitHost
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

Way = Callable[[Call, Callable[[], Reply]], Reply]
MAPS = "/api/v1/namespaces/shop/configmaps"


class Town:
    """A target that was deployed once; `calls`: what its cluster was asked since."""

    def __init__(self, *names: str, settings: Settings = ONE, way: Way = straight) -> None:
        self.calls: list[Call] = []
        self.server, self.host = cluster(), GitHost()

        def seen(call: Call, do: Callable[[], Reply]) -> Reply:
            self.calls.append(call)
            return way(call, do)

        self.handler = engine(self.server, self.host, settings, way=seen)
        self.first = self.declare(*(names or ("web",)))
        assert self.handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
        self.calls.clear()
        self.now = 100.0
        self.inspector = self.inspecting()

    def inspecting(self, handler: Handler | None = None, patience: float = 60.0) -> Inspector:
        made = Inspector(handler or self.handler)
        made.plans = replace(made.plans, looks=SharedLooks(AT_ONCE, lambda: self.now), patience=patience)
        return made

    def declare(self, *names: str, **data: str) -> str:
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}, namespace: shop}}\ndata: {}\n"
        sha = self.host.commit({f"shop/{name}.yaml": text.format(name, json.dumps({"key": "1", **data})) for name in names})
        self.host.push(sha)
        return sha

    def edit(self, name: str, body: dict[str, Any], manager: str = "kubectl-edit") -> None:
        self.server.must(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": manager}, body, "application/merge-patch+json", ""))

    def make(self, name: str) -> None:
        """Create an object by hand."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
        self.server.must(Asked("POST", MAPS, {}, body, "", ""))

    @property
    def lists(self) -> int:
        return sum(call.asked.method == "GET" and call.asked.path.endswith("configmaps") for call in self.calls)


def guarded(count: int = 1, **prune: Any) -> Settings:
    target = Target("shop", SHOP, ("shop",), path="shop", prune=Prune(hold_above=HoldAbove(count, 0.1), **prune))
    return replace(ONE, targets=(target,))


def exclusive(grace: float) -> Settings:
    return replace(ONE, targets=(replace(ONE.targets[0], exclusive=("shop",), orphan_grace=grace),))


def states(gap: Gap) -> dict[str, tuple[str, str]]:
    return {each.object: (str(each.state), each.action) for each in gap.objects}


def fates(found: Orphans) -> dict[str, tuple[str, bool, str]]:
    return {each.object: (str(each.fate), each.held, each.reason) for each in found.orphans}


def test_each_object_is_told_by_what_the_next_run_does_with_it_and_nothing_is_written() -> None:
    town = Town("same", "edited", "gone", "orphan", "left")
    town.edit("edited", {"data": {"key": "2", "more": "3"}})
    town.edit("same", {"data": {"theirs": "4"}}, "operator")
    town.edit("left", {"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}}})
    town.server.must(Asked("DELETE", f"{MAPS}/gone", {}, {}, "", ""))
    town.declare("same", "edited", "gone", "left")
    gap = town.inspector.gap(Ask("shop"))
    assert states(gap) == {
        "ConfigMap/shop/edited": ("differs", "update"),
        "ConfigMap/shop/gone": ("missing", "create"),
        "ConfigMap/shop/orphan": ("undeclared", "prune"),
        "ConfigMap/shop/left": ("itself", "skip"),
        "ConfigMap/shop/same": ("equal", "unchanged"),
    }
    assert list(states(gap)) == [each.object for each in gap.objects], "what differs stands first"
    assert gap.counts == {"differs": 1, "missing": 1, "undeclared": 1, "itself": 1, "equal": 1}
    fields = {each.object: [(field.path, str(field.state), field.manager) for field in each.fields] for each in gap.objects}
    assert fields["ConfigMap/shop/edited"] == [
        ("data.key", "differs", "kubectl-edit"),
        ("data.more", "undeclared", "kubectl-edit"),
    ]
    assert fields["ConfigMap/shop/same"] == [("data.theirs", "undeclared", "operator"), ("data.key", "equal", "anneal")]
    assert gap.differs
    assert [call.asked.method for call in town.calls if call.writes] == []
    assert state_of(town.handler).commit == town.first == gap.seen.deployed


def test_orphans_say_what_goes_what_is_held_and_what_keeps_the_rest() -> None:
    town = Town("a", "b", "c", "d", "kept", settings=guarded())
    town.edit("kept", {"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}})
    town.declare("a", "b")
    found = town.inspector.orphans("shop")
    assert fates(found) == {
        "ConfigMap/shop/c": ("deleted", True, "no longer declared"),
        "ConfigMap/shop/d": ("deleted", True, "no longer declared"),
        "ConfigMap/shop/kept": ("kept", False, "protected by helm.sh/resource-policy: keep"),
    }
    assert found.counts == {"deleted": 2, "recreated": 0, "expires": 0, "kept": 1, "left": 0, "undeclared": 0, "held": 2}
    assert found.seen.hold
    plan = town.handler.run(Job("shop", "push")).plan
    assert plan
    assert plan.hold
    assert plan.hold.id == found.seen.hold["id"]
    assert found.seen.hold["changes"]["count"] == 2
    assert found.seen.hold["reasons"] == ["2 of 5 live objects would be deleted (40 %), above holdAbove 1 and 10%"]


def test_what_was_kept_before_says_since_when() -> None:
    town = Town("a", "b", settings=guarded(enabled=False))
    town.declare("a")
    assert [each.since for each in town.inspector.orphans("shop").orphans] == [""]
    town.handler.run(Job("shop", "push"))
    (kept,) = town.inspecting().orphans("shop").orphans
    assert (str(kept.fate), kept.reason, kept.since) == ("kept", "prune is off", state_of(town.handler).orphans[0].since)


def test_a_commit_a_rollback_and_the_end_of_a_pin_are_looked_at_before_they_are_asked_for() -> None:
    town = Town("a")
    second = town.declare("a", "b")
    town.handler.run(Job("shop", "push"))
    back = town.inspector.gap(Ask("shop", rollback=True))
    assert (back.seen.aim, back.seen.commit, states(back)["ConfigMap/shop/b"]) == ("rollback", town.first, ("undeclared", "prune"))
    named = town.inspector.gap(Ask("shop", town.first))
    assert (named.seen.aim, states(named)) == ("commit", states(back))
    town.handler.run(Job("shop", "oneoff", rollback=True))
    pinned = town.inspecting().gap(Ask("shop"))
    assert (pinned.seen.aim, pinned.seen.commit, pinned.differs) == ("pin", town.first, False)
    unpinned = town.inspector.gap(Ask("shop", unpin=True))
    assert (unpinned.seen.aim, unpinned.seen.commit, states(unpinned)["ConfigMap/shop/b"][0]) == ("unpin", second, "missing")
    assert state_of(town.handler).pin, "a look ends no pin"


@pytest.mark.parametrize("trouble", ["render", "git", "cluster", "unknown", "mistake"])
def test_what_keeps_a_plan_from_being_made_is_the_answer(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = threading.Event()

    def way(_call: Call, do: Callable[[], Reply]) -> Reply:
        return (503, {"kind": "Status", "message": "down"}, {}) if lost.is_set() else do()

    town = Town("a", way=way)
    if trouble == "render":
        town.host.push(town.host.commit({"shop/a.yaml": "kind: [\n"}))
    elif trouble == "git":
        town.host.down = True
    elif trouble == "cluster":
        lost.set()
    elif trouble == "mistake":
        monkeypatch.setattr("handler.engine.run.plan_request.remarks", lambda *_: 1 / 0)
    gap = town.inspector.gap(Ask("nobody" if trouble == "unknown" else "shop"))
    assert (gap.seen.outcome, gap.objects, gap.counts["equal"]) == ("failed", (), 0)
    assert all(each.subject and each.message for each in gap.seen.problems)
    assert gap.seen.code
    assert "Traceback" not in json.dumps(facts(gap))
    if trouble == "render":
        assert gap.seen.problems[0].place.startswith("shop/a.yaml:")


# --- many who ask
def test_fifty_who_ask_at_once_cost_one_plan_and_so_does_whoever_asks_soon_after() -> None:
    held, begun = threading.Event(), threading.Event()

    def slow(call: Call, do: Callable[[], Reply]) -> Reply:
        if armed and call.asked.path.endswith("configmaps"):
            begun.set()
            assert held.wait(PATIENCE)
        return do()

    armed: list[bool] = []
    town = Town("a", way=slow)
    armed.append(True)
    answers: list[Gap] = []
    threads = [threading.Thread(target=lambda: answers.append(town.inspector.gap(Ask("shop")))) for _ in range(50)]
    for thread in threads:
        thread.start()
    assert begun.wait(PATIENCE)
    held.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert (len(answers), len({id(each) for each in answers}), town.lists) == (50, 1, 1)
    town.inspector.gap(Ask("shop"))
    assert town.lists == 1
    found = [town.inspector.orphans("shop") for _ in range(2)]
    assert (found[0] is found[1], town.lists) == (True, 3), "it lists what is undeclared, too"
    town.now += 6
    town.inspector.gap(Ask("shop"))
    assert town.lists == 4


def test_undeclared_objects_of_the_targets_namespaces_are_listed_and_never_touched() -> None:
    town = Town("a")
    town.make("by-hand")
    found = town.inspector.orphans("shop")
    assert fates(found) == {"ConfigMap/shop/by-hand": ("undeclared", False, "isn't declared; its namespace isn't exclusive")}
    assert (found.counts["undeclared"], found.orphans[0].until, found.orphans[0].stays) == (1, "", "")
    assert town.inspector.gap(Ask("shop")).counts["undeclared"] == 0
    assert [call.asked.method for call in town.calls if call.writes] == []


def test_orphans_of_an_exclusive_namespace_say_when_they_go_and_how_they_stay() -> None:
    town = Town("a", settings=exclusive(60.0))
    town.make("by-hand")
    (one,) = town.inspector.orphans("shop").orphans
    assert (str(one.fate), one.until) == ("expires", "")
    assert one.stays == "declare it in git, or kubectl annotate ConfigMap/by-hand -n shop anneal.dev/prune=disabled"
    assert town.handler.run(Job("shop", "drift")).outcome is Outcome.UNCHANGED
    (kept,) = state_of(town.handler).orphans
    town.now += 6
    (one,) = town.inspector.orphans("shop").orphans
    assert (one.until, one.since) == (kept.until, kept.since)
    assert town.handler.run(Job("shop", "push")).outcome is Outcome.UNCHANGED
    assert state_of(town.handler).orphans == (kept,)


def test_namespaces_that_are_all_allowed_are_not_looked_through() -> None:
    town = Town("a", settings=replace(ONE, targets=(replace(ONE.targets[0], namespaces=("*",)),)))
    town.make("by-hand")
    found = town.inspector.orphans("shop")
    assert found.orphans == ()
    assert 'namespaces of the target is "*": undeclared objects are looked for in exclusive namespaces alone' in found.seen.notes


def test_who_is_about_to_act_is_shown_no_plan_of_a_moment_ago_and_others_get_the_new_one() -> None:
    town = Town("a")
    older = town.inspector.gap(Ask("shop"))
    newer = town.inspector.gap(Ask("shop"), anew=True)
    assert newer is not older
    assert town.inspector.gap(Ask("shop")) is newer
    assert town.inspector.gap_facts({"name": "shop", "anew": True})["target"] == "shop"
    assert town.inspector.gap(Ask("shop")) is not newer


def test_an_object_is_answered_from_the_whole_gap_where_that_lists_all_its_fields() -> None:
    town = Town("a", "b")
    town.inspector.gap(Ask("shop"))
    town.calls.clear()
    (one,) = town.inspector.gap(Ask("shop", object="ConfigMap/shop/a")).objects
    assert (one.object, [field.path for field in one.fields], town.lists) == ("ConfigMap/shop/a", ["data.key"], 0)
    cramped = town.inspecting()
    whole = cramped.gap(Ask("shop", most=0))
    assert [(each.fields, each.omitted, each.counts["equal"]) for each in whole.objects] == [((), 1, 1)] * 2
    (asked,) = cramped.gap(Ask("shop", object="ConfigMap/shop/b")).objects
    assert ([field.path for field in asked.fields], asked.omitted) == (["data.key"], 0)


def test_few_look_at_once_and_who_waits_too_long_is_sent_away() -> None:
    names = ("shop", "two", "three")
    settings = replace(ONE, targets=tuple(Target(name, SHOP, ("shop",), path="shop") for name in names))
    held, begun = threading.Event(), threading.Semaphore(0)
    armed: list[bool] = []

    def slow(call: Call, do: Callable[[], Reply]) -> Reply:
        if armed and call.asked.path.endswith("configmaps"):
            begun.release()
            assert held.wait(PATIENCE)
        return do()

    town = Town("a", settings=settings, way=slow)
    armed.append(True)
    inspector = town.inspecting()
    threads = [threading.Thread(target=inspector.gap, args=(Ask(name),)) for name in names[:2]]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=PATIENCE)
    patient, inspector.plans = inspector.plans, replace(inspector.plans, patience=0.05)
    with pytest.raises(ClusterUnavailable, match=r"2 others are under way|hasn't ended within"):
        inspector.gap(Ask("three"))
    with pytest.raises(ClusterUnavailable, match=r"another look at it hasn't ended|hasn't ended within"):
        inspector.gap(Ask("shop", rollback=True))
    inspector.plans = patient
    held.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert inspector.gap(Ask("three")).seen.target == "three"


def test_a_run_beside_a_look_has_a_planner_of_its_own() -> None:
    town = Town("a")
    town.inspector.gap(Ask("shop"))
    looks: Dependencies = town.handler._made["looks", "shop"]
    runs = town.handler.dependencies("shop")
    assert looks.planner is not runs.planner
    assert looks.preparer is not runs.preparer


# --- as JSON
def test_an_answer_has_an_end_and_says_what_it_leaves_out() -> None:
    town = Town(*(f"m{number}" for number in range(6)))
    told = facts(town.inspector.gap(Ask("shop")))
    assert (len(told["objects"]), told["omitted"], cut(told)) == (6, 0, told)
    size = len(json.dumps(told["objects"][0]))
    short = cut(told, size * 3 + 5)
    assert [bool(each["fields"]) for each in short["objects"]] == [True, True, True]
    assert (len(short["objects"]), short["omitted"], short["counts"]) == (3, 3, told["counts"])
    bare = len(json.dumps(told["objects"][0] | {"fields": []}))
    (without,) = cut(told, bare + 1)["objects"]
    assert (without["fields"], without["omitted"]) == ([], 1)
    town.declare("m0")
    orphans = facts(town.inspecting().orphans("shop"))
    assert len(cut(orphans, 1)["orphans"]) == 0
    assert cut(orphans, 1)["omitted"] == 5


def test_another_process_asks_by_one_message() -> None:
    town = Town("a")
    pushed(town.host, "2")
    told = town.inspector.gap_facts({"name": "shop", "commit": town.first, "object": "ConfigMap/shop/a"})
    assert (told["aim"], [each["object"] for each in told["objects"]]) == ("commit", ["ConfigMap/shop/a"])
    assert town.inspector.gap_facts({"name": "shop", "rollback": "yes", "unpin": 1})["aim"] == "head"
    assert town.inspector.orphans_facts({"name": "shop"})["counts"]["deleted"] == 1


def test_what_a_person_forces_is_looked_at_with_the_hooks_that_are_due_then() -> None:
    town = Town("a")
    metadata = {"name": "before", "namespace": "shop", "annotations": {"argocd.argoproj.io/hook": "PreSync"}}
    hook = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    declared = hook | {"metadata": {"name": "a", "namespace": "shop"}}
    town.host.push(town.host.commit({"shop/before.yaml": json.dumps(hook), "shop/a.yaml": json.dumps(declared)}))
    assert town.handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
    assert town.inspector.gap(Ask("shop")).due == ()
    assert [str(due.identity) for due in town.inspector.gap(Ask("shop", force=True)).due] == ["ConfigMap/shop/before"]
    assert len(town.inspector.gap_facts({"name": "shop", "force": True})["due"]) == 1
    assert town.inspector.gap_facts({"name": "shop", "force": "yes"})["due"] == []
    also = hook | {"metadata": metadata | {"name": "a"}}
    town.host.push(town.host.commit({"shop/before.yaml": json.dumps(hook), "shop/a.yaml": json.dumps(also)}))
    lost: Any
    (lost,) = town.inspector.gap_facts({"name": "shop", "anew": True})["lost"]
    assert (lost["action"], lost["object"], lost["held"]) == ("lose", "ConfigMap/shop/a", False)
