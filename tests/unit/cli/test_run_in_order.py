"""Runs of several targets begin when those that they depend on have ended, and no later."""

from __future__ import annotations

from concurrent.futures import Future

from handler.cli.run import in_order
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.result import Outcome, Result


def target(name: str, *after: str) -> Target:
    return Target(name, Repository("https://git.example.com/shop.git"), ("shop",), depends_on=after)


class Runs:
    """Runs that end as scripted, each as soon as no other is left that began before it."""

    def __init__(self, **outcomes: Outcome) -> None:
        self.outcomes = outcomes
        self.ended: list[str] = []
        self.begun: dict[str, tuple[str, ...]] = {}
        """Of each that has begun, what had ended by then."""

    def start(self, chosen: Target) -> Future[Result]:
        self.begun[chosen.name] = tuple(self.ended)
        future: Future[Result] = Future()
        future.set_result(Result(chosen.name, self.outcomes.get(chosen.name, Outcome.APPLIED)))
        return future

    def all(self, *targets: Target) -> dict[str, Outcome]:
        found = {}
        for result in in_order(targets, self.start):
            self.ended.append(result.target)
            found[result.target] = result.outcome
        return found


def test_each_begins_after_what_it_depends_on_and_beside_the_rest() -> None:
    runs = Runs()
    assert len(runs.all(target("apps", "infra", "dns"), target("infra", "dns"), target("dns"), target("other"))) == 4
    assert (runs.begun["dns"], runs.begun["other"]) == ((), ())
    assert "dns" in runs.begun["infra"]
    assert {"infra", "dns"} <= set(runs.begun["apps"])


def test_one_begins_before_what_does_not_concern_it_has_ended() -> None:
    slow: Future[Result] = Future()
    runs = Runs()
    ends = in_order(
        [target("slow"), target("infra"), target("apps", "infra")], lambda each: slow if each.name == "slow" else runs.start(each)
    )
    assert [next(ends).target, next(ends).target] == ["infra", "apps"]
    slow.set_result(Result("slow", Outcome.APPLIED))
    assert [each.target for each in ends] == ["slow"]


def test_a_dependant_begins_also_after_a_failure_for_its_own_run_says_what_it_waits_for() -> None:
    runs = Runs(infra=Outcome.FAILED, apps=Outcome.WAITING)
    assert runs.all(target("apps", "infra", "elsewhere"), target("infra")) == {"infra": Outcome.FAILED, "apps": Outcome.WAITING}
    assert runs.begun["apps"] == ("infra",)
