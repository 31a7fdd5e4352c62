"""Records as the API shows them: one look a cluster, broken ones beside whole ones, nothing secret, nothing endless."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from handler.app.cluster_looks import ClusterLooks, LastSeenByPlace
from handler.app.record_summaries import Readable
from handler.app.target_status import MOST, TargetStatusReader, ended
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import AnnealError, ClusterUnavailable, KubeconfigInvalid
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Hold, Plan
from handler.model.result import Outcome, Result
from handler.state.configmap import SUMMARY
from handler.state.heartbeat import Heartbeat, Signs
from handler.state.record import Attempt, Orphan, Suspend, TargetHealth
from handler.state.record_format import stamp
from tests.fakes.cluster_looks import OneHangs
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import INFRA, SHOP, door_settings
from tests.fakes.worker_parts import remember
from tests.patience import PATIENCE
from tests.unit.state.samples import NOON, blank, full, sha

pytestmark = pytest.mark.slow

ELSEWHERE = Cluster(SecretRef(file="elsewhere"))


def settings() -> Settings:
    """`infra` is on a cluster of its own."""
    known = door_settings()
    return replace(known, targets=tuple(replace(each, cluster=ELSEWHERE) if each.name == "infra" else each for each in known.targets))


def reader(here: FakeObjects, there: Callable[[], Readable]) -> TargetStatusReader:
    def objects(target: Target) -> Readable:
        return there() if target.name == "infra" else here

    return TargetStatusReader(settings(), objects, PATIENCE)


ALL = ["infra", "shop-dev", "shop-fixed", "shop-prod"]


@pytest.fixture
def here() -> FakeObjects:
    objects = FakeObjects()
    remember(objects, replace(full(), target="shop-prod", repository=SHOP))
    remember(objects, replace(blank(commit=sha("b")), target="shop-dev", repository=SHOP))
    return objects


def test_a_cluster_is_looked_at_once_by_metadata_alone(here: FakeObjects) -> None:
    asked: list[str] = []
    here.before = lambda verb, _body: asked.append(verb)
    rows = reader(here, FakeObjects).targets(ALL)
    assert asked == ["list", "get"], "the states, and the Lease that says whether health is watched"
    assert {row["target"]: (row["recorded"], row["commit"], row["held"], row["pin"]) for row in rows} == {
        "shop-prod": (True, sha(), True, sha("f")),
        "shop-dev": (True, sha("b"), False, ""),
        "shop-fixed": (False, "", False, ""),
        "infra": (False, "", False, ""),
    }
    assert not any(row["trouble"] for row in rows)


def test_only_what_is_asked_for_is_shown_and_looked_at(here: FakeObjects) -> None:
    assert [row["target"] for row in reader(here, raising(AssertionError())).targets(["shop-dev"])] == ["shop-dev"]


def raising(error: BaseException) -> Callable[[], Readable]:
    """A cluster that is so broken."""

    def broken() -> Readable:
        raise error

    return broken


AWAY = ClusterUnavailable.of("cluster", "is away")


@pytest.mark.parametrize("error", [KubeconfigInvalid.of("kubeconfig", "has no context"), AWAY])
def test_a_broken_cluster_is_the_trouble_of_its_own_rows(here: FakeObjects, error: AnnealError) -> None:
    look = reader(here, raising(error))
    rows = {row["target"]: row for row in look.targets(ALL)}
    assert rows["infra"]["trouble"]["message"] == str(error)
    assert rows["shop-prod"]["commit"] == sha()
    assert look.target("infra")["trouble"]["code"] == error.code
    assert (look.target("shop-fixed")["recorded"], look.target("shop-fixed")["trouble"]) == (False, None), "it never ran"
    with pytest.raises(type(error)):
        look.run("infra.1")


def test_a_cluster_that_never_answers_delays_no_other_and_holds_one_thread(here: FakeObjects) -> None:
    asked, answer = threading.Semaphore(0), threading.Event()

    def silent() -> Readable:
        asked.release()
        assert answer.wait(PATIENCE)
        return FakeObjects()

    slow = reader(here, silent)
    slow._looks = OneHangs(0.3, ELSEWHERE)
    for _ in range(3):
        rows = {row["target"]: row for row in slow.targets(ALL)}
        assert rows["infra"]["trouble"] == {"code": "cluster-unavailable", "message": "cluster: hasn't answered within 0.3 s"}
        assert (rows["infra"]["seen"], rows["infra"]["age"]) == ("", None), "nothing is known of it"
        assert rows["shop-prod"]["commit"] == sha()
    assert asked.acquire(timeout=PATIENCE)
    assert not asked.acquire(blocking=False), "one look at a time"
    answer.set()


class Hangs:
    """A cluster that answers until it hangs, and again when it is let go."""

    def __init__(self) -> None:
        self.objects, self.asked = FakeObjects(), 0
        self.well = threading.Event()
        self.well.set()
        remember(self.objects, replace(full(), target="infra", repository=INFRA))

    def __call__(self) -> Readable:
        self.asked += 1
        assert self.well.wait(PATIENCE)
        return self.objects


def test_a_dead_cluster_is_shown_as_it_was_seen_last_with_its_age(here: FakeObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    there, late = Hangs(), {"code": "cluster-unavailable", "message": "cluster: hasn't answered within 0.1 s"}
    look = reader(here, there)
    now = float(int(time.time()))
    monkeypatch.setattr(time, "time", lambda: now)
    (row,), whole, deliveries = look.targets(["infra"]), look.target("infra"), look.deliveries(["infra"])
    assert (row["trouble"], row["age"], whole["trouble"], whole["age"]) == (None, 0, None, 0)
    now += 3600
    there.well.clear()
    look._looks = ClusterLooks(0.1)
    try:
        (stale,) = look.targets(["infra"])
        assert stale == {**row, "trouble": late, "age": 3600}
        again, listed = look.target("infra"), look.deliveries(["infra"])
        assert again == {**whole, "trouble": late, "age": 3600}
        assert (listed["recorded"], listed["unread"][0]["code"]) == (deliveries["recorded"], "cluster-unavailable")
        assert listed["unread"][0]["age"] == 3600
    finally:
        there.well.set()


def test_a_decision_waits_for_a_cluster_that_is_late_for_a_view(here: FakeObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.app.target_status.PATIENCE", PATIENCE)
    there = Hangs()
    there.well.clear()
    look = reader(here, there)
    look._looks = ClusterLooks(0.01)
    assert look.target("infra")["trouble"]
    with ThreadPoolExecutor(2) as pool:  # a decision and a question of a run share a look
        run, decided = pool.submit(look.run, f"infra.{'0' * 12}"), pool.submit(partial(look.target, patient=True), "infra")
        there.well.set()
        found = decided.result(PATIENCE)
        assert run.result(PATIENCE) is None
    assert (found["trouble"], found["recorded"]) == (None, True)
    assert there.asked > 1, "what began before it was asked for decides nothing"


def test_a_late_look_at_a_cluster_serves_as_the_next_ones_last_seen(here: FakeObjects) -> None:
    there = Hangs()
    there.well.clear()
    look = reader(here, there)
    look._looks = ClusterLooks(0.1)
    assert [(row["recorded"], row["seen"]) for row in look.targets(["infra"])] == [(False, "")]
    under_way = look._looks._join(ELSEWHERE, lambda: None)
    there.well.set()
    assert under_way.result(PATIENCE)
    there.well.clear()
    try:
        (row,) = look.targets(["infra"])
    finally:
        there.well.set()
    assert (row["recorded"], row["commit"], row["trouble"]["code"], not row["seen"]) == (True, sha(), "cluster-unavailable", False)


def test_the_cache_of_whole_targets_evicts_the_least_recently_asked() -> None:
    sights, looks = LastSeenByPlace[int](2), ClusterLooks(PATIENCE)

    broken: Any = raising(AWAY)
    for place in ("a", "b", "a", "c"):
        sights.all(looks, {place: lambda: 1})
    assert {place: sights.all(looks, {place: broken})[place].what for place in "abc"} == {"a": 1, "b": None, "c": 1}


def test_a_look_that_has_ended_is_made_anew() -> None:
    seen: list[int] = []
    looks = ClusterLooks(PATIENCE)
    for number in range(3):
        assert looks.all({"place": partial(seen.append, number)}) == {"place": None}
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("error", [KeyError("labels"), SystemExit(1), TimeoutError(), MemoryError()], ids=repr)
def test_an_unexpected_exception_of_a_read_is_the_trouble_of_its_cluster_alone(
    here: FakeObjects, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    look = reader(here, raising(error))
    rows = {row["target"]: row for row in look.targets(ALL)}
    assert rows["shop-prod"]["commit"] == sha()
    told = {"code": "internal", "message": f"anneal: internal error: {type(error).__name__}; the worker's log has its trace"}
    assert rows["infra"]["trouble"] == told
    assert look.deliveries(ALL)["unread"] == [{"target": "infra", **told, "seen": "", "age": None}]
    assert look.target("infra")["trouble"] == told
    assert caplog.records[0].exc_info


def test_a_look_that_found_no_thread_is_made_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    looks = ClusterLooks(PATIENCE)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", full)
        assert looks.all({"place": lambda: 1})["place"].code == "internal"
    assert looks.all({"place": lambda: 1}) == {"place": 1}


def test_a_summary_that_cant_be_read_is_said_to_be(here: FakeObjects) -> None:
    here._stored[("ConfigMap", "anneal-system", "anneal-shop-dev")]["metadata"]["annotations"][SUMMARY] = "{"
    (row,) = reader(here, FakeObjects).targets(["shop-dev"])
    assert (row["recorded"], row["trouble"]["code"]) == (True, "state-invalid")


@pytest.mark.parametrize("name", ALL)
def test_a_row_by_reads_of_its_own_is_the_row_of_the_list(here: FakeObjects, name: str) -> None:
    look, asked = reader(here, FakeObjects), list[str]()
    (listed,) = look.targets([name])
    here.before = lambda verb, _body: asked.append(verb)
    row = look.row(name)
    assert (row, "list" in asked) == ({**listed, "seen": row["seen"], "age": row["age"]}, False)


def test_a_row_of_a_broken_cluster_is_as_the_last_list_has_shown_it(here: FakeObjects) -> None:
    look = reader(here, FakeObjects)
    (listed,) = look.targets(["shop-dev"])

    def broken(_verb: str, _body: object) -> None:
        raise AWAY

    here.before = broken
    row = look.row("shop-dev")
    assert (row["commit"], row["recorded"], row["trouble"]["code"]) == (listed["commit"], True, "cluster-unavailable")


@pytest.mark.parametrize("name", ["shop-dev", "shop-fixed"], ids=["recorded", "never-ran"])
@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("ends", ["", stamp(time.time() - 1)], ids=["open", "past"])
def test_a_target_is_suspended_by_its_configuration_or_until_its_pause_ends(name: str, ends: str, *, configured: bool) -> None:
    objects, known = FakeObjects(), settings()
    remember(objects, replace(blank(commit=sha("b")), target="shop-dev", repository=SHOP, suspend=Suspend("ada", until=ends)))
    paused = replace(known, targets=tuple(replace(each, suspend=configured) for each in known.targets))
    look = TargetStatusReader(paused, lambda _target: objects, PATIENCE)
    (row,) = look.targets([name])
    shown = configured or (name == "shop-dev" and not ends)
    assert (row["suspended"], look.row(name)["suspended"]) == (shown, shown)


@pytest.mark.parametrize("count", [3, None], ids=["seen", "unseen"])
def test_what_lives_of_a_target_without_a_record_is_asked_once_a_minute(here: FakeObjects, count: int | None) -> None:
    asked: list[str] = []

    def members(target: Target) -> int | None:
        asked.append(target.name)
        return count

    look = TargetStatusReader(settings(), lambda _: here, PATIENCE, members=members)
    assert [look.target(name).get("members") for name in ("shop-fixed", "shop-dev", "shop-fixed")] == [count, None, count]
    assert asked == ["shop-fixed"]


def test_a_record_is_read_while_what_lives_of_its_target_is_looked_for(here: FakeObjects) -> None:
    going, asked = threading.Event(), threading.Event()

    def members(_target: Target) -> int | None:
        asked.set()
        return 3 if going.wait(PATIENCE) else None

    look = TargetStatusReader(settings(), lambda _: here, PATIENCE, members=members)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(look.target, "shop-fixed")
        assert asked.wait(PATIENCE)
        second = threads.submit(look.target, "shop-fixed")
        going.set()
        assert (first.result()["members"], second.result()["members"]) == (3, 3)


def test_a_target_is_shown_whole_and_its_fencing_token_isnt(here: FakeObjects) -> None:
    shown = reader(here, FakeObjects).target("shop-prod")
    state = shown["state"]
    assert state["held"] == {
        "id": "h1",
        "reasons": ["deletes 12 of 20"],
        "changes": {"count": 1, "items": [{"action": "prune", "object": "apps/Deployment/shop/api", "uid": "u"}]},
        "commit": sha("e"),
        "since": NOON,
        "command": "",
    }
    assert state["attempt"] == {"commit": sha("e"), "since": NOON}
    orphan = {"uid": "u-9", "identity": "Deployment/shop/api", "since": NOON, "sibling": "", "unmarked": False, "until": ""}
    unmarked = orphan | {"uid": "u-10", "unmarked": True, "until": NOON}
    assert state["orphans"] == {"count": 2, "items": [orphan, unmarked]}
    assert (state["declared"], state["history"][0]["actor"], state["suspend"]["reason"]) == (3, "ada", "maintenance")
    assert shown["repository"] == SHOP


def test_a_rollout_is_shown_but_for_what_its_actions_remember(here: FakeObjects) -> None:
    state = reader(here, FakeObjects).target("shop-prod")["state"]
    assert state["waiting"] == {"commit": sha("e"), "what": "everything", "since": NOON, "over": False, "moved": ""}
    steps = state["rollout"].pop("steps")
    assert state["rollout"] == {"commit": sha("e"), "started": NOON, "finished": "", "outcome": ""}
    assert [(step["group"], step["step"], step["outcome"], step["message"], step["share"]) for step in steps["items"]] == [
        ("first", "migrate", "done", "", 0),
        ("then", "api", "", "1 of 3", 0),
        ("then", "web", "", "", 25),
    ]
    assert not any({"mark", "stood"} & step.keys() for step in steps["items"])


def test_a_run_is_found_by_its_id_in_the_record_of_the_target_it_names() -> None:
    there = FakeObjects()
    runs = tuple(replace(full().history[0], id=f"infra.{number}") for number in range(3))
    remember(there, replace(full(), target="infra", repository=INFRA, history=runs))
    look = reader(FakeObjects(), lambda: there)
    found = look.run("infra.1")
    assert found
    assert (found["run"], found["status"], found["outcome"], found["source"]) == ("infra.1", "ended", "applied", "record")
    assert (look.run("infra.9"), look.run("shop-fixed.1")) == (None, None)


def test_recorded_deliveries_come_newest_first_beside_the_unread_targets(here: FakeObjects) -> None:
    found = reader(here, raising(AWAY)).deliveries(ALL)
    assert [(row["target"], row["id"]) for row in found["recorded"]] == [("shop-prod", "1")]
    assert [(row["target"], row["code"]) for row in found["unread"]] == [("infra", "cluster-unavailable")]


def test_long_lists_are_cut_and_say_how_long_they_are() -> None:
    objects = FakeObjects()
    many = tuple(Orphan(f"u{number}", Identity("", "ConfigMap", "shop", f"c{number}"), NOON) for number in range(MOST + 50))
    remember(objects, replace(full(), target="shop-prod", repository=SHOP, orphans=many))
    orphans = reader(objects, FakeObjects).target("shop-prod")["state"]["orphans"]
    assert (orphans["count"], len(orphans["items"])) == (MOST + 50, MOST)


def test_the_end_of_a_run_is_told_in_the_records_own_words_and_within_bounds() -> None:
    changes = tuple(("prune", f"ConfigMap/shop/c{number}", f"u{number}") for number in range(MOST * 3))
    plan = Plan("shop-prod", sha(), (), hold=Hold("h2", ("deletes many",), changes))
    result = Result("shop-prod", Outcome.HELD, sha(), "replay", "x" * 10_000, run="shop-prod.1", plan=plan, next_try=1e9)
    told = ended(result, Job("shop-prod", "replay", actor="ci"), 1e9)
    assert (told["run"], told["outcome"], told["actor"], told["nextTry"]) == ("shop-prod.1", "held", "ci", "2001-09-09T01:46:40Z")
    assert (told["held"]["changes"]["count"], len(told["held"]["changes"]["items"])) == (MOST * 3, MOST)
    assert len(told["message"]) == 4000


@pytest.mark.parametrize(("attempt", "shown"), [(None, "healthy"), (Attempt(sha("e"), sha("b"), sha("c"), "u.1", NOON), "unknown")])
def test_a_health_watch_confirms_health_but_not_during_an_open_attempt(attempt: Attempt | None, shown: str) -> None:
    objects, well, known = FakeObjects(clock=time.time), TargetHealth("healthy", NOON, NOON), replace(settings(), drift_interval=60.0)
    remember(objects, replace(blank(commit=sha("b")), target="shop-dev", repository=SHOP, health=well, attempt=attempt))
    Heartbeat(objects, known.state_namespace, known.installation).renew(Signs("worker", "1.0.0", {}, (0.0, 180.0)))
    looks = TargetStatusReader(known, lambda _: objects, PATIENCE)
    (row,) = looks.targets(["shop-dev"])
    assert (row["health"], looks.target("shop-dev")["state"]["health"]["state"]) == (shown, shown)
