"""What steps of a Rollout do in the plan of a pull request, beside what a run plans for the same objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.config.settings import HoldAbove, Prune, RecreateSettings
from handler.engine.planner.planner import PlanRequest
from handler.engine.planner.preview import Preview, Previewer
from handler.engine.planner.preview_rollout import IF_THERE
from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.errors import PlanRefused
from handler.model.manifest import Manifest
from handler.model.names import PART_OF, GroupKind, Identity
from handler.model.plan import Action, Change, Plan
from handler.model.render import Rendered
from handler.model.tree import ReadSet
from handler.plan.admission import Admission
from handler.plan.order import order
from handler.plan.rollout import roll
from handler.rollout.checks import CHECKS
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.apply.planned_target import APPLYSET, MAPS, TARGET, Body, PlannedTarget, config_map, ours

pytestmark = pytest.mark.slow

SECRETS = "/api/v1/namespaces/shop/secrets"
KINDS = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret"), GroupKind("", "Namespace")})
FEW = Prune(hold_above=HoldAbove(1, 0.1))


def named(name: str, kind: str = "ConfigMap") -> Identity:
    return Identity("", kind, "shop", name)


def secret(name: str, value: str) -> Body:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"}, "stringData": {"key": value}}


def namespace(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@dataclass
class Rolled:
    """A target on a cluster in memory, a commit of it whose Rollout has `steps` (name -> action), and the requests of its previews."""

    shop: PlannedTarget = field(default_factory=PlannedTarget)
    asked: list[Call] = field(default_factory=list)
    now: tuple[Body, ...] = ()
    """What git declares before the merge."""

    @classmethod
    def of(cls, **settings: Any) -> Rolled:
        return cls(PlannedTarget(replace(TARGET, **settings)))

    def live(self, *bodies: Body) -> None:
        """Let objects live that the target has applied, as git declares them."""
        self.now = bodies
        self.shop.apply(self.shop.plan(*bodies))
        self.shop.written.clear()

    def admission(self) -> Admission:
        discovery = self.shop.planner.discovery
        return Admission(self.shop.target, APPLYSET, "anneal-system", discovery.find, discovery.listable())

    def request(self, steps: Mapping[str, str], *bodies: Body, mark: str = "") -> PlanRequest:
        manifests = tuple(Manifest.of(body, f"{body['metadata']['name']}.yaml:1") for body in bodies)
        written = [{"object": name, "action": action} for name, action in steps.items()]
        head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "all"}}
        rollout = Manifest.of({**head, "spec": {"groups": [{"name": "all", "steps": written}]}}, "r.yaml:1")
        keys = {manifest.identity.name: (manifest.identity,) for manifest in manifests}
        rendered = Rendered(manifests, ReadSet(()), rollout=rollout, keys=keys)
        automatic, rolled = roll(rendered, self.admission().admit(manifests), ACTIONS, CHECKS)
        stages, due = (*order(automatic).stages, *rolled.stages), tuple(replace(each, mark=mark) for each in rolled.due())
        prune = self.shop.target.prune.enabled
        return PlanRequest("c" * 40, "", "", stages, KINDS, prune=prune, planned_rollout=rolled, due=due)

    def run(self, ask: PlanRequest) -> Plan:
        return self.shop.planner.plan(ask).plan

    def preview(self, ask: PlanRequest, **previewer: Any) -> Preview:
        self.asked.clear()

        def noted(call: Call, do: Callable[[], Reply]) -> Reply:
            self.asked.append(call)
            return do()

        self.shop.meet, meet = noted, self.shop.meet
        now = self.admission().admit([Manifest.of(body, "a.yaml:1") for body in self.now])
        found = Previewer(self.shop.planner, None, now={item.identity: item for item in now}, **previewer).preview(ask)
        self.shop.meet = meet
        assert self.shop.written == [], "nothing is written"
        return found

    def both(self, ask: PlanRequest) -> tuple[Plan, Plan]:
        """Return what is previewed and what a run plans, which must do the same."""
        seen, planned = self.preview(ask), self.run(ask)
        assert seen.problems == ()
        assert [acts(stage) for stage in seen.plan.stages] == [acts(stage) for stage in planned.stages]
        assert acts(seen.plan.prunes) == acts(planned.prunes)
        assert (seen.plan.hold and seen.plan.hold.reasons) == (planned.hold and planned.hold.reasons)
        return seen.plan, planned


def acts(changes: tuple[Change, ...]) -> list[tuple[Action, str]]:
    return sorted((change.action, str(change.identity)) for change in changes)


def change(plan: Plan, name: str) -> Change:
    (found,) = (each for each in plan.changes if each.identity.name == name)
    return found


def protected(body: Body, **metadata: Any) -> Body:
    return {**body, "metadata": {**body["metadata"], **(metadata or {"annotations": {"anneal.dev/prune": "disabled"}})}}


@pytest.fixture
def rolled() -> Rolled:
    return Rolled()


# --- Recreate
@pytest.mark.parametrize("value", ["1", "2"], ids=["same", "differs"])
def test_members_that_a_step_makes_anew_are_recreated_and_held_as_by_a_run(value: str) -> None:
    rolled = Rolled.of(prune=FEW)
    names = ("a", "b", "c")
    rolled.live(*map(config_map, (*names, "rest")))
    ask = rolled.request(dict.fromkeys(names, "Recreate"), *(config_map(name, value) for name in names), config_map("rest"))
    seen, planned = rolled.both(ask)
    assert seen.counts(done=False) == {"to recreate": 3, "unchanged": 1}
    assert seen.hold is not None
    assert seen.hold.reasons == ("3 of 4 live objects would be deleted (75 %), above holdAbove 1 and 10%",)
    assert change(seen, "a") == change(planned, "a")


def test_one_member_that_a_step_makes_anew_is_told(rolled: Rolled) -> None:
    rolled.live(config_map("job"), config_map("web"))
    seen, _ = rolled.both(rolled.request({"job": "Recreate", "web": "CreateOrUpdate"}, config_map("job"), config_map("web")))
    assert (change(seen, "job").action, change(seen, "job").reason) == (Action.RECREATE, "step job in all makes it anew")
    assert change(seen, "web").action is Action.UNCHANGED


def test_a_step_that_isnt_due_or_has_done_its_part_makes_nothing_anew(rolled: Rolled) -> None:
    rolled.live(config_map("job"))
    ask = rolled.request({"job": "Recreate"}, config_map("job"))
    rolled.both(replace(ask, due=()))
    before = rolled.request({"job": "Recreate"}, config_map("job"), mark="another-uid")
    seen, _ = rolled.both(before)
    assert change(seen, "job").action is Action.UNCHANGED


@pytest.mark.parametrize("value", ["1", "2"], ids=["same", "differs"])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_secret_is_made_anew_without_a_word_of_what_it_holds(rolled: Rolled, value: str, goes_on: bool) -> None:
    rolled.live(secret("s", "1"), config_map("web"))
    _, live = rolled.shop.server.answer(_get(f"{SECRETS}/s"))[:2]
    mark = live["metadata"]["uid"] if goes_on else ""
    seen, _ = rolled.both(rolled.request({"s": "Recreate"}, secret("s", value), config_map("web"), mark=mark))
    made = change(seen, "s")
    assert (made.action, made.uid, made.resource_version, made.fields) == (Action.RECREATE, "", "", ())
    assert made.reason == "step s in all makes it anew"


@pytest.mark.parametrize("value", ["1", "2"], ids=["same", "differs"])
def test_a_protected_member_isnt_made_anew_and_hides_no_other(rolled: Rolled, value: str) -> None:
    rolled.live(protected(config_map("job")), config_map("other"))
    ask = rolled.request({"job": "Recreate", "other": "Recreate"}, config_map("job", value), config_map("other"))
    found = rolled.preview(ask)
    _only_lists(rolled)
    with pytest.raises(PlanRefused) as refused:
        rolled.run(ask)
    assert found.problems == refused.value.problems
    assert acts(found.plan.changes) == [(Action.RECREATE, "ConfigMap/shop/other")]


def test_a_kind_that_holds_data_is_made_anew_only_if_recreate_kinds_names_it() -> None:
    settings: Body = {"namespaces": ("shop", "data")}
    rolled = Rolled.of(**settings)
    rolled.live(namespace("data"))
    ask = rolled.request({"data": "Recreate"}, namespace("data"))
    assert [str(each.subject) for each in rolled.preview(ask).problems] == ["Namespace/data"]
    allowed = Rolled.of(**settings, recreate=RecreateSettings(kinds=("Namespace",)))
    allowed.live(namespace("data"))
    allowed.both(allowed.request({"data": "Recreate"}, namespace("data")))
    new = Rolled.of(**settings)
    seen, _ = new.both(new.request({"data": "Recreate"}, namespace("data")))
    assert change(seen, "data").action is Action.CREATE, "if it lives the step is refused: it never deletes it"


def test_what_an_annotation_leaves_alone_is_left_by_a_step_too(rolled: Rolled) -> None:
    rolled.live(config_map("job"))
    rolled.shop.patch("job", metadata={"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}})
    rolled.shop.written.clear()
    seen, _ = rolled.both(rolled.request({"job": "Recreate"}, config_map("job")))
    assert change(seen, "job").action is Action.SKIP


@pytest.mark.parametrize("lives", [False, True])
@pytest.mark.parametrize("action", ["DeleteIfExist", "Recreate"])
def test_no_step_deletes_what_no_member_is_and_nothing_says_whether_it_lives(rolled: Rolled, action: str, lives: bool) -> None:
    rolled.live(config_map("web"))
    if lives:
        rolled.shop.post(MAPS, config_map("job", "canary"))
    found = rolled.preview(rolled.request({"job": action}, config_map("job"), config_map("web")))
    expected = [(Action.CREATE, "ConfigMap/shop/job")] if action == "Recreate" else []
    assert acts(found.plan.changes) == [*expected, (Action.UNCHANGED, "ConfigMap/shop/web")]
    assert (found.plan.gone, found.plan.hold) == ((), None)
    _only_lists(rolled)


def test_where_values_may_decide_what_lives_what_is_made_anew_tells_nothing_of_it(rolled: Rolled) -> None:
    rolled.live(config_map("same"), config_map("differs"), secret("s", "1"))
    steps = dict.fromkeys(("same", "differs", "new", "s"), "Recreate")
    ask = rolled.request(steps, config_map("same"), config_map("differs", "2"), config_map("new"), secret("s", "1"))
    found = rolled.preview(ask, guessed=True, declared=[named("same"), named("differs")])
    told = {(each.action, each.uid, each.resource_version, each.fields, each.reason.split(" ", 2)[2]) for each in found.plan.changes}
    assert told == {(Action.RECREATE, "", "", (), f"in all makes it anew, {IF_THERE}")}


# --- DeleteIfExist
@pytest.mark.parametrize("prune", [Prune(), FEW], ids=["prunes", "holds"])
def test_members_that_a_step_deletes_go_in_its_stage_as_by_a_run(prune: Prune) -> None:
    rolled = Rolled.of(prune=prune)
    rolled.live(*map(config_map, ("old", "older", "web", "gone")))
    steps = {"old": "DeleteIfExist", "web": "CreateOrUpdate", "older": "DeleteIfExist"}
    seen, planned = rolled.both(rolled.request(steps, *map(config_map, ("old", "older", "web"))))
    assert change(seen, "old") == change(planned, "old")
    assert (change(seen, "old").action, change(seen, "old").reason) == (Action.PRUNE, "step old in all deletes it")
    assert change(seen, "gone").action is Action.PRUNE
    assert bool(seen.hold) is (prune is FEW)


def test_where_prune_is_off_a_step_that_deletes_is_refused_as_by_a_run() -> None:
    rolled = Rolled.of(prune=Prune(enabled=False))
    rolled.live(*map(config_map, ("old", "web")))
    ask = rolled.request({"old": "DeleteIfExist"}, *map(config_map, ("old", "web")))
    with pytest.raises(PlanRefused) as refused:
        rolled.run(ask)
    assert rolled.preview(ask).problems == refused.value.problems


def test_a_delete_step_that_isnt_due_leaves_its_object_to_the_prune(rolled: Rolled) -> None:
    rolled.live(config_map("old"), config_map("web"))
    ask = rolled.request({"old": "DeleteIfExist"}, config_map("old"), config_map("web"))
    seen, _ = rolled.both(replace(ask, due=()))
    assert change(seen, "old").reason == "no longer declared"


def test_a_rollout_that_only_deletes_is_no_empty_render() -> None:
    rolled = Rolled.of(prune=Prune())
    rolled.live(config_map("old"))
    seen, _ = rolled.both(rolled.request({"old": "DeleteIfExist"}, config_map("old")))
    assert seen.hold is not None, "the last one of ours would go"


def test_a_protected_member_isnt_deleted_and_hides_no_other(rolled: Rolled) -> None:
    rolled.live(protected(config_map("kept")), config_map("old"), config_map("web"))
    steps = {"kept": "DeleteIfExist", "old": "DeleteIfExist"}
    ask = rolled.request(steps, config_map("kept"), config_map("old"), config_map("web"))
    found = rolled.preview(ask)
    with pytest.raises(PlanRefused) as refused:
        rolled.run(ask)
    assert found.problems == refused.value.problems
    assert acts(found.plan.changes) == [(Action.PRUNE, "ConfigMap/shop/old"), (Action.UNCHANGED, "ConfigMap/shop/web")]


@pytest.mark.parametrize("holds", [False, True])
def test_what_a_namespace_holds_is_not_asked(holds: bool) -> None:
    rolled = Rolled.of(namespaces=("shop", "data"))
    rolled.live(namespace("data"), config_map("web"))
    if holds:
        body = config_map("inside")
        rolled.shop.post("/api/v1/namespaces/data/configmaps", {**body, "metadata": {"name": "inside", "namespace": "data"}})
    ask = rolled.request({"data": "DeleteIfExist"}, namespace("data"), config_map("web"))
    gone = change(rolled.preview(ask).plan, "data")
    assert (gone.action, gone.reason) == (Action.PRUNE, "step data in all deletes it, if nothing else is in it")
    _only_lists(rolled)
    if not holds:
        rolled.both(ask)


@pytest.mark.parametrize(
    ("guessed", "declared", "told"),
    [(False, [], True), (True, [], False), (True, [named("old")], True)],
)
def test_where_values_may_decide_what_lives_no_step_asks_whether_a_name_does(
    rolled: Rolled, guessed: bool, declared: list[Identity], told: bool
) -> None:
    rolled.live(config_map("old"), config_map("web"))
    ask = rolled.request({"old": "DeleteIfExist"}, config_map("old"), config_map("web"))
    gone = change(rolled.preview(ask, guessed=guessed, declared=declared).plan, "old")
    assert (gone.action, bool(gone.uid), gone.reason.endswith(IF_THERE)) == (Action.PRUNE, told, not told)


def test_an_object_of_a_kind_that_is_not_served_can_not_be_there(rolled: Rolled) -> None:
    rolled.live(config_map("web"))
    ask = rolled.request({"old": "DeleteIfExist"}, config_map("old"), config_map("web"))
    doomed = ask.planned_rollout.doomed[named("old")]
    unserved = replace(doomed, resource=replace(doomed.resource, version="v9"))
    ask = replace(ask, planned_rollout=replace(ask.planned_rollout, doomed={named("old"): unserved}))
    assert acts(rolled.preview(ask).plan.changes) == [(Action.UNCHANGED, "ConfigMap/shop/web")]


def test_an_object_that_only_carries_our_label_is_no_member(rolled: Rolled) -> None:
    copied = ours(config_map("copy"))
    copied["metadata"]["annotations"] = {"anneal.dev/prune": "disabled"}
    rolled.shop.post(MAPS, copied)
    found = rolled.preview(rolled.request({"copy": "DeleteIfExist"}, config_map("copy"), config_map("web")))
    assert (acts(found.plan.changes), found.plan.gone, found.problems) == ([(Action.CREATE, "ConfigMap/shop/web")], (), ())


def _only_lists(rolled: Rolled) -> None:
    """Nothing was asked of the cluster's objects but LISTs of members."""
    looks = [each.asked for each in rolled.asked if each.asked.path.startswith("/api/v1/")]
    assert {asked.method for asked in looks} == {"GET"}
    assert all(PART_OF in asked.query.get("labelSelector", "") for asked in looks), [asked.path for asked in looks]


def _get(path: str) -> Asked:
    return Asked("GET", path, {}, None, "", "")
