"""The pictures of the targets under way, and how a reader learns what has changed."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from handler.app.run_events import RunEvents
from handler.feedback import live_runs
from handler.feedback.live_runs import BYTES, ENDED, LONGEST, MISSING, OBJECTS, PAGE, STAGES, WAITS, WRITTEN, LiveRuns
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action, Change, Hold
from handler.model.result import Outcome, Result
from handler.model.run_event import HealthChanged, InstanceGone, ObjectsWritten, OpenWait, PlanHeld, RunEnded, RunPhase, RunPlanned
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

WRITES = tuple(Change(Action.UPDATE, Identity("", "ConfigMap", "shop", f"c{number}")) for number in range(3))


def applying(target: str = "shop", run: str = "shop.1", *waits: OpenWait) -> RunPhase:
    return RunPhase(target, run, "c1", "applying", 7.0 if waits else 0.0, waits)


def ended(outcome: Outcome, target: str = "shop", run: str = "shop.1") -> RunEnded:
    return RunEnded(Job(target, "push", run=run), Result(target, outcome, run=run), 1.0)


@pytest.fixture
def runs() -> LiveRuns:
    return LiveRuns(lambda: 100.0)


def picture(runs: LiveRuns, target: str = "shop") -> Any:
    return runs.changes("", 0, 0.0)["targets"][target]


def test_a_picture_shows_phase_waits_and_what_was_written(runs: LiveRuns) -> None:
    runs.hear(applying())
    runs.hear(ObjectsWritten("shop", "shop.1", WRITES))
    assert runs.picture("web") is None
    runs.hear(applying("shop", "shop.1", OpenWait("everything", ("Deployment/shop/web: 0 of 1",))))
    assert (
        picture(runs)
        == runs.picture("shop")
        == {
            "run": "shop.1",
            "commit": "c1",
            "phase": "applying",
            "since": 7.0,
            "started": 100.0,
            "waits": [{"what": "everything", "missing": ["Deployment/shop/web: 0 of 1"]}],
            "written": [{"object": f"ConfigMap/shop/c{number}", "action": "update"} for number in range(3)],
            "total": 3,
            "stages": [],
            "held": False,
            "ended": "",
            "beside": 0,
        }
    )


def test_a_record_that_changes_beside_a_run_is_counted_in_its_picture(runs: LiveRuns) -> None:
    runs.recorded("web")
    assert picture(runs, "web") is None
    runs.hear(applying())
    runs.recorded("shop")
    runs.hear(HealthChanged("shop", "healthy", ""))
    assert picture(runs)["beside"] == 2


def test_the_stages_of_a_plan_are_shown_with_what_of_them_is_done(runs: LiveRuns) -> None:
    names = [str(change.identity) for change in WRITES]
    planned = RunPlanned("shop", "shop.1", "c1", (((names[0], "update"), (names[1], "create")), (("Service/shop/old", "prune"),)))
    runs.hear(planned)
    runs.hear(ObjectsWritten("shop", "shop.1", WRITES[:1]))
    first, last = picture(runs)["stages"]
    assert (first["count"], first["done"]) == (2, 1)
    assert [(each["object"], each["done"]) for each in first["objects"]] == [(names[0], True), (names[1], False)]
    pruned = {"object": "Service/shop/old", "action": "prune", "done": False}
    assert last == {"count": 1, "done": 0, "objects": [pruned], "started": 0.0, "finished": 0.0}
    assert (first["started"], first["finished"]) == (100.0, 0.0)
    runs.hear(ObjectsWritten("shop", "shop.1", WRITES[:2]))
    assert (picture(runs)["stages"][0]["done"], picture(runs)["stages"][0]["finished"]) == (2, 100.0)
    runs.hear(planned)
    assert picture(runs)["stages"][0]["done"] == 0, "another round of the run plans anew"
    runs.hear(ended(Outcome.APPLIED))
    assert picture(runs)["stages"] == [], "what has ended is told by the record"


def test_a_plan_of_many_objects_is_counted_whole_and_shown_in_part(runs: LiveRuns) -> None:
    stage = tuple((f"ConfigMap/shop/c{number}", "create") for number in range(OBJECTS + 5))
    runs.hear(RunPlanned("shop", "shop.1", "c1", (stage,) * (STAGES + 5)))
    stages = picture(runs)["stages"]
    assert (len(stages), stages[0]["count"], len(stages[0]["objects"])) == (STAGES, OBJECTS + 5, OBJECTS)


def test_an_answer_of_many_large_pictures_has_an_end_and_the_rest_follows(runs: LiveRuns) -> None:
    stage = tuple((f"ConfigMap/shop/{'c' * 200}{number}", "create") for number in range(OBJECTS))
    names = [f"target-{number}" for number in range(PAGE)]
    for name in names:
        runs.hear(RunPlanned(name, f"{name}.1", "c1", (stage,) * STAGES))
    seen, since = list[str](), 0
    while len(seen) < len(names):
        answer = runs.changes(picture_boot(runs), since, 0.0)
        assert len(json.dumps(answer)) < 2 * BYTES
        assert answer["version"] > since
        seen, since = [*seen, *answer["targets"]], answer["version"]
    assert seen == names


def picture_boot(runs: LiveRuns) -> str:
    return str(runs.changes("", 0, 0.0)["boot"])


def test_an_end_is_shown_with_what_was_written_and_the_next_run_begins_anew(runs: LiveRuns) -> None:
    runs.hear(ObjectsWritten("shop", "shop.1", WRITES))
    runs.hear(applying("shop", "shop.1", OpenWait("everything")))
    runs.hear(ended(Outcome.FAILED))
    shown = picture(runs)
    assert (shown["ended"], shown["waits"], shown["since"], shown["total"]) == ("failed", [], 0.0, 3)
    runs.hear(applying("shop", "shop.2"))
    assert (picture(runs)["ended"], picture(runs)["total"]) == ("", 0)


@pytest.mark.parametrize("outcome", [Outcome.LAGGING, Outcome.WAITING, Outcome.BUSY])
def test_what_another_run_goes_on_with_has_not_ended(runs: LiveRuns, outcome: Outcome) -> None:
    runs.hear(applying())
    runs.hear(ended(outcome))
    assert picture(runs)["ended"] == ""


def test_a_run_that_has_nothing_to_show_leaves_the_last_picture(runs: LiveRuns) -> None:
    runs.hear(applying())
    runs.hear(ended(Outcome.APPLIED))
    before = runs.changes("", 0, 0.0)
    runs.hear(ended(Outcome.UNCHANGED, run="shop.2"))
    after = runs.changes(before["boot"], before["version"], 0.0)
    assert after["targets"] == before["targets"]
    assert after["version"] > before["version"], "its record may have changed"


def test_health_and_ends_of_targets_without_a_picture_are_changes_of_their_records(runs: LiveRuns) -> None:
    runs.hear(HealthChanged("shop", "healthy", "unhealthy"))
    runs.hear(ended(Outcome.UNCHANGED, "web", "web.1"))
    assert runs.changes("", 0, 0.0)["targets"] == {"shop": None, "web": None}


def test_a_held_plan_is_shown(runs: LiveRuns) -> None:
    runs.hear(PlanHeld("shop", "shop.1", "c1", Hold("h1", (), ())))
    assert (picture(runs)["held"], picture(runs)["commit"]) == (True, "c1")


def test_a_reader_gets_what_changed_since_its_last_question(runs: LiveRuns) -> None:
    runs.hear(applying("shop"))
    runs.hear(applying("web", "web.1"))
    first = runs.changes("", 0, 0.0)
    assert first["targets"].keys() == {"shop", "web"}
    assert runs.changes(first["boot"], first["version"], 0.0)["targets"] == {}
    runs.hear(ended(Outcome.APPLIED, "web", "web.1"))
    assert runs.changes(first["boot"], first["version"], 0.0)["targets"].keys() == {"web"}


def test_a_reader_of_another_life_of_the_worker_gets_everything(runs: LiveRuns) -> None:
    runs.hear(applying())
    known = runs.changes("", 0, 0.0)
    next_life = LiveRuns()
    next_life.hear(applying("web", "web.1"))
    found = next_life.changes(known["boot"], 1000, 0.0)
    assert (found["targets"].keys(), found["boot"] == known["boot"]) == ({"web"}, False)


def test_a_question_waits_for_a_change(runs: LiveRuns) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(runs.changes("", 0, PATIENCE)))
    thread.start()
    assert found == []
    runs.hear(applying())
    thread.join(PATIENCE)
    assert found[0]["targets"].keys() == {"shop"}


def test_many_changes_come_in_pages_the_oldest_first(runs: LiveRuns) -> None:
    names = [f"t{number}" for number in range(2 * PAGE + 5)]
    for name in names:
        runs.hear(applying(name, f"{name}.1"))
    boot, version, got = "", 0, list[str]()
    for expected in (PAGE, PAGE, 5):
        found = runs.changes(boot, version, 0.0)
        assert len(found["targets"]) == expected
        boot, version = found["boot"], found["version"]
        got += found["targets"]
    assert got == names
    assert runs.changes(boot, version, 0.0)["targets"] == {}


def test_what_is_kept_is_bounded(runs: LiveRuns) -> None:
    waits = [OpenWait("w" * 1000, tuple("m" * 1000 for _ in range(100))) for _ in range(1000)]
    runs.hear(RunPhase("shop", "shop.1", "c1", "applying", 0.0, tuple(waits)))
    for _ in range(100):
        runs.hear(ObjectsWritten("shop", "shop.1", WRITES))
    shown = picture(runs)
    assert (len(shown["waits"]), len(shown["waits"][0]["missing"]), len(shown["waits"][0]["missing"][0])) == (WAITS, MISSING, LONGEST)
    assert (len(shown["written"]), shown["total"]) == (WRITTEN, 300)


def test_of_ended_runs_the_latest_pictures_are_kept_and_all_of_those_under_way(runs: LiveRuns) -> None:
    for number in range(ENDED + 10):
        runs.hear(applying(f"t{number}", f"t{number}.1"))
    runs.hear(applying("long", "long.1"))
    for number in range(ENDED + 10):
        runs.hear(ended(Outcome.APPLIED, f"t{number}", f"t{number}.1"))
    known: dict[str, Any] = {}
    boot, version = "", 0
    while len(known) < ENDED + 11:
        found = runs.changes(boot, version, 0.0)
        boot, version = found["boot"], found["version"]
        known |= found["targets"]
    assert [name for name, each in known.items() if each is None] == [f"t{number}" for number in range(10)]
    assert known["long"]["ended"] == ""


def test_the_row_hears_what_a_process_announces() -> None:
    events = RunEvents()
    live: LiveRuns = events.add("live")
    events.announce(applying())
    assert events.drained(PATIENCE)
    assert live.changes("", 0, 0.0)["targets"].keys() == {"shop"}
    assert events.close(PATIENCE)


def test_what_is_known_of_targets_that_come_and_go_is_bounded(runs: LiveRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_runs, "TARGETS", 3)
    for number in range(10):
        runs.hear(HealthChanged(f"shop.ns.{number}", "", "healthy"))
    assert list(runs.changes("", 0, 0.0)["targets"]) == ["shop.ns.7", "shop.ns.8", "shop.ns.9"]


@pytest.mark.parametrize("outcome", [Outcome.WAITING, Outcome.BUSY, Outcome.APPLIED])
def test_an_instance_that_is_gone_leaves_no_picture_and_readers_are_sent_none(runs: LiveRuns, outcome: Outcome) -> None:
    name = "grafana.shop.main"
    runs.hear(applying(name, f"{name}.1"))
    runs.hear(ended(outcome, name, f"{name}.1"))
    found = runs.changes("", 0, 0.0)
    assert found["targets"][name]["run"] == f"{name}.1"
    runs.hear(InstanceGone(name))
    runs.hear(ended(Outcome.APPLIED, name, f"{name}.2"))
    assert runs.changes(found["boot"], found["version"], 0.0)["targets"] == {name: None}
    assert (runs.picture(name), runs._pictures) == (None, {})


def test_a_picture_that_no_reader_can_ask_for_any_more_is_dropped(runs: LiveRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_runs, "TARGETS", 3)
    for number in range(10):
        runs.hear(applying(f"shop.ns.{number}", "r"))
    assert list(runs._pictures) == ["shop.ns.7", "shop.ns.8", "shop.ns.9"]
