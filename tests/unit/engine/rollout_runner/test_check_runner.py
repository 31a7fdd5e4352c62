"""When a step's checks end it: what must hold at once, what ends it, whose time counts and from when. Its clock is the test's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from handler.engine.health.custom_health import no_expressions
from handler.engine.rollout_runner.check_runner import WatchedStep, check
from handler.engine.waits.evidence import Pace
from handler.engine.waits.wait_record import WaitRecord
from handler.model.errors import RolloutFailed, StillWaiting, Stopping
from handler.model.names import Identity, Resource
from handler.model.queue_view import ALONE
from handler.model.rollout import Check
from handler.rollout.checks import CHECKS
from handler.rollout.interfaces import Judged, Options, Probe, Scene, Verdict
from tests.unit.engine.in_memory_journal import Kept

pytestmark = pytest.mark.slow

THING = Resource("example.com", "v1", "Thing", "things", namespaced=True)
IDENTITY = Identity("example.com", "Thing", "shop", "web")
BEGAN = 1_000.0
PASSED, PENDING, FAILED = Judged(Verdict.PASSED, "is so"), Judged(Verdict.PENDING, "isn't so"), Judged(Verdict.FAILED, "can't be so")
UNKNOWN = Judged(Verdict.PENDING, "nobody answers", known=False)
LIVE = {"metadata": {"name": "web"}}


class Scripted:
    """A row whose options say what each look finds; the last one stays. `looks`: what was looked at, when."""

    def __init__(self) -> None:
        self.looks: list[tuple[str, Any, float]] = []

    def read(self, raw: Any, field: str) -> Options:
        raise NotImplementedError

    def begin(self, options: Options, scene: Scene) -> Probe:
        found: list[Judged] = list(options["finds"])

        def look(live: Any, now: float) -> Judged:
            self.looks.append((options["name"], live, now))
            return found.pop(0) if len(found) > 1 else found[0]

        return SimpleNamespace(look=look)


def one(name: str, *finds: Judged, **limits: float) -> Check:
    return Check("scripted", name, {"finds": finds, "name": name, **limits})


class Waiting:
    """What a run's waits are to `check`: states of the object and beats of time, as the test has written them."""

    def __init__(self, *happens: Any, now: float = BEGAN, patience: float = math.inf) -> None:
        self.happens, self.now, self.pace = happens, now, Pace()
        self.rows = {"scripted": Scripted()}
        planner = SimpleNamespace(api=SimpleNamespace(server_time=lambda: self.now, get=lambda *_, **__: None))
        preparer = SimpleNamespace(checks=self.rows)
        deps = SimpleNamespace(metrics=None, preparer=preparer, patience=patience, planner=planner, health=no_expressions())
        deps.target = SimpleNamespace(evidence=SimpleNamespace(logs=""))
        job, state = SimpleNamespace(target="shop"), SimpleNamespace(attempt=None)
        self.run = SimpleNamespace(deps=deps, clock=lambda: self.now, closed=frozenset(), queue=ALONE, job=job, state=state)

    def saw(self, identity: Identity, live: Any, generation: int) -> None:
        self.last = identity, live, generation

    def look(self) -> None:
        self.now += 1

    def follow(self, kept: WaitRecord, wanted: Any, judge: Any, timeout: float, beat: Callable[[], Iterable[Identity] | None]) -> bool:
        assert (kept.what, list(wanted), timeout, kept.since) == ("roll out, web", [(THING, IDENTITY)], math.inf, BEGAN)
        for each in self.happens:
            if isinstance(each, StillWaiting):
                raise each
            if isinstance(each, int | float):
                self.now += each
                if beat():
                    return True
            elif judge(IDENTITY, each):
                return True
        raise AssertionError("it hasn't ended")


def kept_anew() -> Kept:
    return Kept("roll out, web", BEGAN)


def ended(waits: Waiting, success: Sequence[Check] = (), failure: Sequence[Check] = (), **more: Any) -> str:
    more = {"resource": THING} | more
    told = more.pop("told", [])
    kept = more.pop("kept", None) or kept_anew()
    watched = WatchedStep(kept, identity=IDENTITY, success=tuple(success), failure=tuple(failure), place="a.yaml:1", **more)
    return check(waits, watched, report=told.append)  # type: ignore[arg-type]  # it has what is asked of Waits


def failure_of(waits: Waiting, *success: Check, failure: Sequence[Check] = ()) -> str:
    with pytest.raises(RolloutFailed) as error:
        ended(waits, success, failure)
    return str(error.value)


def test_all_checks_must_pass_at_the_same_look() -> None:
    waits = Waiting(LIVE, LIVE, LIVE)
    seen = ended(waits, [one("first", PASSED, PENDING, PASSED), one("second", PENDING, PASSED)])
    assert seen == "first: is so; second: is so"
    assert [live for _, live, _ in waits.rows["scripted"].looks] == [LIVE] * 6


def test_a_condition_of_failure_that_holds_ends_the_step_at_once_whatever_else_passes() -> None:
    assert failure_of(Waiting(LIVE), one("fine", PASSED), failure=[one("guard", PASSED)]) == (
        "a.yaml:1: Thing/shop/web: failure check guard: is so"
    )
    assert ended(Waiting(LIVE), [one("fine", PASSED)], [one("guard", PENDING), one("never", FAILED)]) == "fine: is so"


def test_a_check_that_cant_pass_any_more_ends_the_step_and_every_one_is_named() -> None:
    found = failure_of(Waiting(LIVE), one("first", FAILED), one("second", FAILED), one("third", PENDING))
    assert found == "a.yaml:1: Thing/shop/web: first: can't be so\na.yaml:1: Thing/shop/web: second: can't be so"


def test_no_step_succeeds_while_a_failure_check_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.engine.rollout_runner.check_runner._REPORT_EVERY", math.inf)
    again = Judged(Verdict.PENDING, "nobody answers", again=5, known=False)
    waits = Waiting(LIVE, 3, 3, 3)
    told: list[str] = []
    assert ended(waits, [one("fine", PASSED)], [one("guard", again, PENDING)], told=told) == "fine: is so"
    assert waits.now == BEGAN + 6
    assert told == ["guard: nobody answers"]
    late = failure_of(Waiting(LIVE, 30, 31), one("fine", PASSED), failure=[one("guard", UNKNOWN, timeout=60)])
    assert "guard: nobody answers; unanswered after 1m" in late


def test_a_check_that_only_time_changes_is_judged_when_it_is_due() -> None:
    waits = Waiting(LIVE, 4, 1, 4, 1)
    ended(waits, [one("timed", Judged(Verdict.PENDING, again=5), Judged(Verdict.PENDING, again=5), PASSED), one("other", PASSED)])
    looks = [(name, now - BEGAN) for name, _, now in waits.rows["scripted"].looks]
    assert looks == [("timed", 0), ("other", 0), ("timed", 5), ("timed", 10)]


def test_time_counts_from_the_steps_begin_though_another_run_began_it() -> None:
    late = Waiting(LIVE, 5, 5, now=BEGAN + 50)
    assert "slow: isn't so; not so after 1m" in failure_of(late, one("slow", PENDING, timeout=60))
    assert late.now == BEGAN + 60


def test_a_check_past_its_timeout_gets_one_last_look() -> None:
    assert ended(Waiting(LIVE, now=BEGAN + 600), [one("slow", PASSED, timeout=60)]) == "slow: is so"
    assert "not so after 1m" in failure_of(Waiting(LIVE, now=BEGAN + 600), one("slow", PENDING, timeout=60))
    with pytest.raises(AssertionError, match="hasn't ended"):
        ended(Waiting(600, now=BEGAN + 600), [one("unseen", PENDING, timeout=60)])


def test_progress_timeout_counts_from_the_last_change_of_the_compared_value() -> None:
    one_of, two_of = (Judged(Verdict.PENDING, f"{number} of 3", f"{number}") for number in (1, 2))
    waits = Waiting(LIVE, 40, LIVE, 40, LIVE, 19, 1)
    found = failure_of(waits, one("rolls", one_of, two_of, progressTimeout=60))
    assert "rolls: 2 of 3; not so, and nothing of it has changed for 1m" in found
    assert waits.now == BEGAN + 40 + 60


LEFT = StillWaiting.of("target shop", "waits")


def looked(kept: Kept, now: float, *checks: Check) -> None:
    """One run of a function: it looks once, and leaves the rest to the next."""
    with pytest.raises(StillWaiting):
        ended(Waiting(LIVE, LEFT, now=now), checks, kept=kept)


def test_progress_timeout_counts_over_runs_that_each_look_once() -> None:
    one_of, two_of = (Judged(Verdict.PENDING, f"{number} of 3", f"{number}") for number in (1, 2))
    kept = kept_anew()
    looked(kept, BEGAN + 10, one("rolls", one_of, progressTimeout=60))
    looked(kept, BEGAN + 60, one("rolls", one_of, progressTimeout=60))
    looked(kept, BEGAN + 69, one("rolls", two_of, progressTimeout=60))
    looked(kept, BEGAN + 128, one("rolls", two_of, progressTimeout=60))
    with pytest.raises(RolloutFailed, match="rolls: 2 of 3; not so, and nothing of it has changed for 1m"):
        ended(Waiting(LIVE, now=BEGAN + 129), [one("rolls", two_of, progressTimeout=60)], kept=kept)


def test_a_check_that_goes_on_covers_none_that_stands_still_over_runs() -> None:
    steps = [Judged(Verdict.PENDING, f"{number} of 3", f"{number}") for number in range(3)]
    still, kept = Judged(Verdict.PENDING, "hangs", "hangs"), kept_anew()
    for number, now in enumerate((0, 40)):
        looked(kept, BEGAN + now, one("rolls", steps[number], progressTimeout=60), one("other", still, progressTimeout=60))
    both = [one("rolls", steps[2], progressTimeout=60), one("other", still, progressTimeout=60)]
    with pytest.raises(RolloutFailed, match="other: hangs; not so, and nothing of it has changed for 1m") as error:
        ended(Waiting(LIVE, now=BEGAN + 60), both, kept=kept)
    assert "rolls" not in str(error.value)


def test_a_value_that_changes_and_comes_back_is_progress() -> None:
    here, there = (Judged(Verdict.PENDING, where, where) for where in ("here", "there"))
    kept = kept_anew()
    looked(kept, BEGAN, one("odd", here, progressTimeout=60))
    with pytest.raises(StillWaiting):
        ended(Waiting(LIVE, LIVE, LIVE, LEFT, now=BEGAN + 50), [one("odd", here, there, here, progressTimeout=60)], kept=kept)
    looked(kept, BEGAN + 109, one("odd", here, progressTimeout=60))
    with pytest.raises(RolloutFailed, match="nothing of it has changed for 1m"):
        ended(Waiting(LIVE, now=BEGAN + 110), [one("odd", here, progressTimeout=60)], kept=kept)


def test_a_late_metric_answer_in_each_run_is_no_progress() -> None:
    asked, same = Judged(Verdict.PENDING, "no answer yet", known=False), Judged(Verdict.PENDING, "7", "7")
    kept = kept_anew()
    for now in (0, 30):
        with pytest.raises(StillWaiting):
            ended(Waiting(LIVE, LIVE, LEFT, now=BEGAN + now), [one("slow", asked, same, progressTimeout=60)], kept=kept)
    with pytest.raises(RolloutFailed, match="slow: 7; not so, and nothing of it has changed for 1m"):
        ended(Waiting(LIVE, LIVE, now=BEGAN + 60), [one("slow", asked, same, progressTimeout=60)], kept=kept)


def test_only_checks_with_a_progress_timeout_are_kept_between_runs() -> None:
    kept = kept_anew()
    compared = Judged(Verdict.PENDING, "same", "same")
    looked(kept, BEGAN, one("unlimited", compared), one("silent", PENDING, progressTimeout=60), one("so", PASSED, progressTimeout=60))
    assert not kept.seen


def test_progress_timeout_doesnt_count_for_passed_checks_nor_without_progress() -> None:
    silent, passed = Judged(Verdict.PENDING, "runs"), Judged(Verdict.PASSED, "stands", "same")
    waits = Waiting(LIVE, 500, 500, LIVE)
    ended(waits, [one("silent", silent, PASSED, progressTimeout=60), one("steady", passed, progressTimeout=60)])


def test_a_check_is_held_for_its_whole_duration() -> None:
    waits = Waiting(LIVE, 60, 59, 1)
    assert ended(waits, [one("fine", PASSED)], hold=120.0) == "fine: is so"
    assert waits.now == BEGAN + 120


def test_a_failed_check_during_its_hold_ends_the_step() -> None:
    with pytest.raises(RolloutFailed, match="failure check guard: is so"):
        ended(Waiting(LIVE, 60, LIVE), [one("fine", PASSED)], [one("guard", PENDING, PASSED)], hold=120.0)


def test_without_an_object_to_follow_checks_are_looked_at_all_the_same() -> None:
    waits = Waiting()
    assert ended(waits, [one("metric", Judged(Verdict.PENDING, again=2), PASSED)], resource=None) == "metric: is so"
    assert [live for _, live, _ in waits.rows["scripted"].looks] == [None, None]
    with pytest.raises(StillWaiting, match="waits for the checks of roll out, web"):
        ended(Waiting(patience=0.0), [one("metric", PENDING)], resource=None)


def test_an_interrupt_ends_the_wait_for_checks() -> None:
    def beat() -> None:
        raise Stopping.of("target shop", "the worker is shutting down")

    watched = WatchedStep(kept_anew(), THING, IDENTITY, (one("fine", PENDING),), ())
    with pytest.raises(Stopping):
        check(Waiting(LIVE, 1), watched, beat)  # type: ignore[arg-type]  # it has what is asked of Waits


def test_progress_of_checks_is_masked_cut_and_rate_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("handler.engine.rollout_runner.check_runner.time.monotonic", lambda: now[0])
    finds = [Judged(Verdict.PENDING, f"http://a:CANARY@b {number} " + "x" * 1000) for number in range(4)]
    told: list[str] = []

    def report(message: str) -> None:
        told.append(message)

    waits = Waiting(LIVE, LIVE, LIVE, LIVE, LIVE)
    original = waits.rows["scripted"].begin

    def begin(options: Options, scene: Scene) -> Probe:
        probe = original(options, scene)

        def look(live: Any, at: float) -> Judged:
            now[0] += 1
            return probe.look(live, at)

        return SimpleNamespace(look=look)

    waits.rows["scripted"].begin = begin  # type: ignore[method-assign]  # each look takes a second
    watched = WatchedStep(kept_anew(), THING, IDENTITY, (one("slow", *finds, PASSED),), ())
    check(waits, watched, report=report)  # type: ignore[arg-type]  # it has what is asked of Waits
    assert [message[:24] for message in told] == ["slow: http://a:***@b 0 x", "slow: http://a:***@b 3 x"]
    assert all(len(message) <= 500 for message in told)


# --- effort: what one look at an object may cost, however many comparisons its checks make
def compares(name: str, path: str, count: int = 100) -> Check:
    options = CHECKS["fieldComparisons"].read([{"path": path, "value": {"static": 1}}] * count, name)
    return Check("fieldComparisons", name, options)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{.status.items[?(@.absent)]}", {"items": [{}] * 1_000}),
        ("{.status.items[?(@.x==2)]}", {"items": [{"x": 1}] * 500}),
        ("{.status.items[0:5000]}", {"items": [0] * 1_000}),
        ("{.status..absent}", {"items": [0] * 1_000}),
        ("{.status}", {"items": [0] * 1_000}),
        ("{.status}", {"text": "x" * 100_000}),
    ],
    ids=["passed over", "filtered", "found", "below", "large", "long"],
)
@pytest.mark.parametrize("failing", [False, True], ids=["success", "failure"])
def test_all_comparisons_of_a_step_share_what_one_look_at_its_object_may_cost(path: str, status: Any, *, failing: bool) -> None:
    """Alone each is cheap; fifty checks of a hundred would take minutes each time that the object changes."""
    waits = Waiting({"metadata": {"name": "web"}, "status": status})
    waits.rows = {**waits.rows, "fieldComparisons": CHECKS["fieldComparisons"]}  # type: ignore[dict-item]  # rows of another type
    waits.run.deps.preparer.checks = waits.rows
    checks = [compares("few", "{.status.ready}"), *(compares(f"many {number}", path) for number in range(3))]
    said = failure_of(waits, one("fine", PENDING), failure=checks) if failing else failure_of(waits, *checks)
    assert said.startswith("a.yaml:1: Thing/shop/web: many 0: the step's checks look at more than 200,000 values of its object at once")


def test_each_look_at_the_object_has_the_same_effort_anew() -> None:
    live = {"metadata": {"name": "web"}, "status": {"items": [{"x": 1}] * 500}}
    waits = Waiting(*[live] * 20, 3601)
    waits.run.deps.preparer.checks = CHECKS
    assert "not so after 1h" in failure_of(waits, compares("some", "{.status.items[?(@.x==2)]}", 50))
