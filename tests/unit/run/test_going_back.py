"""What a rollback leaves for those who come after it: the failed commit, once its pin ends, and a person who was quicker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from handler.config.settings import Rollback
from handler.model.event import Job
from handler.model.result import Outcome
from handler.rollout.hooks import ROLLOUT
from handler.run.rollback import before as deployed_before
from handler.state.record import Pin, State
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.engine import ONE, state_of
from tests.unit.run.town import MAPS, Town, config_map

BACK = replace(ONE, targets=(replace(ONE.targets[0], rollback=Rollback(on_failure=True)),))
HOOK = {"argocd.argoproj.io/hook": "PreSync"}
REFUSED: Reply = (422, {"kind": "Status", "code": 422, "status": "Failure", "reason": "Invalid", "message": "no such table"}, {})


def push(town: Town, value: str, **more: dict[str, str]) -> str:
    """Push a commit with one ConfigMap, and others with these annotations."""
    maps = {"web": config_map("web", value)} | {name: config_map(name, value) for name in more}
    for name, marks in more.items():
        maps[name]["metadata"]["annotations"] = marks
    sha = town.host.commit({f"shop/{name}.yaml": json.dumps(body) for name, body in maps.items()})
    town.host.push(sha)
    return sha


def refusing(name: str, before: Callable[[], None] = lambda: None) -> Callable[[Call, Callable[[], Reply]], Reply]:
    """Return a way on which no write of a ConfigMap is taken; `before`: done right before that is said."""

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.writes and call.asked.path == f"{MAPS}/{name}":
            before()
            return REFUSED
        return do()

    return way


def test_who_ends_the_pin_has_the_failed_commit_tried_once_more_also_where_the_one_before_had_no_rollout() -> None:
    town = Town()
    old = push(town, "1")
    assert town.handler(BACK).run(Job("shop", "push")).outcome is Outcome.APPLIED
    new = push(town, "2", migrate=HOOK)
    town.meet = refusing("migrate")
    assert town.handler(BACK).run(Job("shop", "push")).outcome is Outcome.ROLLED_BACK
    assert town.handler(BACK).run(Job("shop", "tick")).commit == old
    town.meet = straight
    result = town.handler(BACK).run(Job("shop", "replay", unpin=True, actor="jo"))
    assert (result.outcome, result.commit) == (Outcome.APPLIED, new), result.problems
    migrated = town.live("migrate")
    assert migrated
    assert ROLLOUT in migrated["metadata"]["annotations"]


def test_a_rollout_that_failed_is_not_tried_again_by_a_tick() -> None:
    town = Town()
    push(town, "1")
    town.handler(ONE).run(Job("shop", "push"))
    push(town, "2", migrate=HOOK)
    town.meet = refusing("migrate")
    assert town.handler(ONE).run(Job("shop", "push")).outcome is Outcome.FAILED
    town.meet = straight
    for trigger in ("tick", "push", "drift"):
        assert town.handler(ONE).run(Job("shop", trigger)).outcome is Outcome.FAILED
    assert town.live("migrate") is None


def test_a_persons_pin_stands_that_came_while_a_rollout_failed() -> None:
    town = Town()
    first = push(town, "0")
    town.handler(BACK).run(Job("shop", "push"))
    push(town, "1")
    town.handler(BACK).run(Job("shop", "push"))
    push(town, "2", migrate=HOOK)
    handler = town.handler(BACK)

    def said() -> None:
        handler.store(handler.target("shop")).update(lambda state: replace(state, pin=Pin(first, "a" * 64, "jo", "wait for me")))

    town.meet = refusing("migrate", said)
    result = town.handler(BACK).run(Job("shop", "push"))
    assert result.outcome is Outcome.FAILED
    pin = state_of(handler).pin
    assert pin
    assert (pin.commit, pin.by) == (first, "jo")


def test_before_a_first_deployment_there_is_none_to_go_back_to() -> None:
    assert deployed_before(State("shop", "default", "c1")) == ""
