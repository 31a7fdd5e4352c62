"""Runs of a target with an exclusive namespace: which of them look there, what each records, and when what isn't declared goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.config.settings import HoldAbove, Prune, Settings, Target
from handler.engine.apply import wait_deleted
from handler.model.event import Job
from handler.model.plan import Action
from handler.model.result import Outcome, Result
from handler.state.record import Orphan
from handler.state.record_format import seconds_of
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine, state_of
from tests.fakes.git_host import GitHost
from tests.unit.engine.in_memory_cluster import MAPS, config_map
from tests.unit.engine.killed_runs import Death, Killed

pytestmark = pytest.mark.slow

GRACE = 3600.0
NOON = 1_800_000_000.0
DONE = (Outcome.APPLIED, Outcome.UNCHANGED)
BOLD = Prune(hold_above=HoldAbove(1000, 1.0))
"""Nothing waits for an approval."""
STATES = "/api/v1/namespaces/anneal-system/configmaps"


@dataclass
class Exclusive:
    """A target that declares `web`, by clocks of the test's: the API server's, and the worker's, which is `fast` by so much."""

    now: float = NOON
    fast: float = 0.0
    way: Way = straight
    target: Target = field(default_factory=lambda: Target("shop", SHOP, ("shop",), path="shop"))
    server: ApiServer = field(init=False)
    host: GitHost = field(default_factory=GitHost)
    handler: Handler = field(init=False)

    def __post_init__(self) -> None:
        self.server = cluster()
        self.server.clock = lambda: self.now
        self.configure(exclusive=("shop",), orphan_grace=GRACE, prune=BOLD)

    def configure(self, **changes: Any) -> None:
        """Change settings, and begin with a fresh handler."""
        self.target = replace(self.target, **changes)
        settings = Settings(targets=(self.target,))
        self.handler = engine(self.server, self.host, settings, way=self._meet, clock=lambda: self.now + self.fast)
        self.handler.dependencies("shop").planner.api.server_time = lambda: self.now  # type: ignore[method-assign]  # the seam

    def _meet(self, call: Call, do: Callable[[], Reply]) -> Reply:
        return self.way(call, do)

    def push(self, *names: str) -> None:
        self.host.push(self.host.commit({f"shop/{name}.json": json.dumps(config_map(name, "1")) for name in names}))

    def plant(self, *names: str, **metadata: Any) -> None:
        """Create objects by hand."""
        for name in names:
            body = config_map(name, "1")
            body["metadata"] |= metadata
            self.server.must(Asked("POST", MAPS, {"fieldManager": "by-hand"}, body, "", ""))

    def drop(self, path: str, name: str) -> None:
        self.server.must(Asked("DELETE", f"{path}/{name}", {}, {}, "", ""))

    def ask(self, trigger: str = "drift", **about: Any) -> Result:
        return self.handler.run(Job("shop", trigger, **about))

    def run(self, trigger: str = "drift", **about: Any) -> set[str]:
        """Run; return the names of what was deleted."""
        result = self.ask(trigger, **about)
        assert result.outcome in DONE, result
        return {change.identity.name for change in result.written if change.action is Action.PRUNE}

    def orphans(self) -> dict[str, Orphan]:
        """Return what the record knows of the exclusive namespace, by name."""
        return {each.identity.name: each for each in state_of(self.handler).orphans if each.unmarked}

    def due(self) -> str:
        return state_of(self.handler).drift_due

    def wait(self) -> None:
        """Let all that is known become due."""
        self.now = max(seconds_of(each.until) for each in self.orphans().values())

    def names(self) -> set[str]:
        return {identity.name for identity, _ in self.server.store.all() if (identity.kind, identity.namespace) == ("ConfigMap", "shop")}


@pytest.fixture
def shop() -> Exclusive:
    made = Exclusive()
    made.push("web")
    made.run("push")
    return made


@pytest.fixture
def known(shop: Exclusive) -> Exclusive:
    """One whose record knows of a stray."""
    shop.plant("stray")
    assert shop.run() == set()
    return shop


def test_a_worker_whose_clock_is_fast_deletes_nothing_early_and_looks_again_when_it_may(known: Exclusive) -> None:
    before = known.orphans()
    known.fast = 2 * GRACE
    assert known.run() == set()
    assert known.orphans() == before
    assert seconds_of(known.due()) > known.now + 2 * GRACE, "not again and again until then"
    known.wait()
    assert known.run() == {"stray"}


def test_pushes_and_ticks_neither_look_nor_forget_until_the_time_has_come(known: Exclusive) -> None:
    (orphan,) = known.orphans().values()
    assert known.due() == orphan.until
    known.plant("later")
    known.push("web", "more")
    assert known.run("push") == set()
    assert known.run("tick") == set()
    assert known.orphans() == {"stray": orphan}
    known.wait()
    assert known.run("tick") == {"stray"}, "its drift run is due then, and a tick is that"
    assert known.orphans().keys() == {"later"}
    known.wait()
    assert known.run() == {"later"}
    assert (known.orphans(), known.due(), known.names()) == ({}, "", {"web", "more"})


def test_nothing_is_deleted_by_the_first_run_that_knows_the_setting_nor_once_it_is_gone(shop: Exclusive) -> None:
    shop.configure(exclusive=())
    shop.run("push")
    shop.plant("stray")
    shop.now += 10 * GRACE
    shop.configure(exclusive=("shop",))
    assert shop.run() == set()
    assert shop.orphans().keys() == {"stray"}
    shop.wait()
    shop.configure(exclusive=())
    shop.run("push")
    assert shop.orphans() == {}
    assert shop.run() == set()
    assert "stray" in shop.names()


def test_where_deletion_is_off_or_drift_only_reported_orphans_are_shown_and_stay(known: Exclusive) -> None:
    for settings in ({"prune": Prune(enabled=False)}, {"prune": BOLD, "drift": "report"}):
        known.configure(**settings)
        known.run("push")
        for _ in range(2):
            known.run()
            known.now += 2 * GRACE
        (orphan,) = known.orphans().values()
        assert (orphan.until, known.due()) == ("", "")
    assert "stray" in known.names()


def test_many_deletions_are_held_and_the_approval_deletes_exactly_them(shop: Exclusive) -> None:
    shop.configure(prune=Prune(hold_above=HoldAbove(2, 0.5)))
    strays = {f"stray-{number}" for number in range(4)}
    shop.plant(*sorted(strays))
    shop.run()
    shop.wait()
    held = shop.ask()
    assert (held.outcome, held.plan and held.plan.hold is not None) == (Outcome.HELD, True)
    assert "4 objects that git doesn't declare would be deleted in exclusive namespace" in held.message
    assert shop.ask("tick").outcome is Outcome.HELD, "a tick doesn't forget what waits"
    shop.plant("late")
    waiting = state_of(shop.handler).held
    assert waiting
    assert shop.run("replay", approve=waiting.id, actor="ann") == strays
    assert (shop.names(), set(shop.orphans())) == ({"web", "late"}, {"late"})


def test_a_person_who_prunes_deletes_what_is_due_and_nothing_before(known: Exclusive) -> None:
    assert known.run("oneoff", force=True) == set()
    known.wait()
    assert known.run("oneoff", force=True) == {"stray"}


def test_a_run_that_may_not_delete_does_not_and_begins_no_grace_again(known: Exclusive) -> None:
    before = known.orphans()
    known.wait()
    assert known.run(prune=False) == set()
    assert known.orphans() == before
    assert known.run() == {"stray"}


def test_a_lost_record_begins_every_grace_anew(known: Exclusive) -> None:
    known.wait()
    known.drop(STATES, "anneal-shop")
    known.configure()
    assert known.run("tick") == set()
    assert known.run() == set()
    assert seconds_of(known.orphans()["stray"].until) > known.now


def test_an_orphan_that_does_not_go_is_reported_and_holds_no_later_run_up(shop: Exclusive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 0.01)
    shop.plant("stuck", finalizers=["acme.io/hold"])
    shop.run()
    shop.wait()
    waits = shop.ask()
    assert waits.outcome is Outcome.PRUNING, waits
    assert "acme.io/hold" in waits.message
    shop.push("web", "more")
    shop.run("push")
    assert state_of(shop.handler).attempt is None
    shop.now += GRACE
    shop.run()
    (orphan,) = shop.orphans().values()
    assert (orphan.until, shop.due()) == ("", ""), "nothing is left to do but to wait"
    freed = {"metadata": {"finalizers": None}}
    shop.server.must(Asked("PATCH", f"{MAPS}/stuck", {"fieldManager": "x"}, freed, "application/merge-patch+json", ""))
    shop.run()
    assert (shop.orphans(), shop.names()) == ({}, {"web", "more"})


def deaths(shop: Exclusive) -> Iterator[Death]:
    """Kill a run at each of its writes in turn, before it and after it, until one has ended by itself."""
    for number in range(1, 99):
        for done in (False, True):
            yield (death := Death(number, done))
            if not death.dead:
                return


def test_a_run_that_is_killed_at_any_write_leaves_the_grace_known_and_the_next_ones_finish(shop: Exclusive) -> None:
    number = 0
    for death in deaths(shop):
        number += 1
        strays = {f"stray-{number}-{each}" for each in range(2)}
        shop.plant(*sorted(strays))
        shop.run()
        assert shop.orphans().keys() == strays
        shop.wait()
        shop.way = death
        try:
            shop.run()
        except Killed:
            assert death.dead
        shop.way = straight
        shop.now += 60.0  # its Lease runs out
        shop.configure()
        for trigger in ("tick", "drift"):
            shop.run(trigger)
        state = state_of(shop.handler)
        assert (state.attempt, state.orphans, shop.names()) == (None, (), {"web"})
    assert number > 4
