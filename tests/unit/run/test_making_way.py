"""What lives under a hook's name: what goes for it, what is brought to what it says, and what is never touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handler.model.event import Job
from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE
from tests.unit.run.test_going_back import HOOK, push
from tests.unit.run.town import MAPS, Town, config_map

AFTER = {"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/hook-delete-policy": "HookSucceeded"}
HELM = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "theirs"}}


def run(town: Town) -> Outcome:
    return town.handler(ONE).run(Job("shop", "push")).outcome


def plant(town: Town, **metadata: dict[str, str]) -> None:
    body = config_map("after", "theirs")
    body["metadata"] |= metadata
    status, _ = town.server.answer(Asked("POST", MAPS, {}, body, "", ""))
    assert status == 201


def test_what_was_no_hook_until_now_is_not_deleted_for_it_and_what_a_rollout_made_is() -> None:
    town = Town()
    push(town, "1", migrate={})
    assert run(town) is Outcome.APPLIED
    before = town.uid("migrate")
    push(town, "2", migrate=HOOK)
    assert run(town) is Outcome.APPLIED
    assert (town.data("migrate"), town.uid("migrate")) == (["2"], before)
    push(town, "3", migrate=HOOK)
    assert run(town) is Outcome.APPLIED
    assert town.data("migrate") == ["3"]
    assert town.uid("migrate") != before


@pytest.mark.parametrize("metadata", [{}, HELM])
def test_what_isnt_ours_is_refused_before_anything_is_written_where_a_policy_would_delete_it(metadata: dict[str, dict[str, str]]) -> None:
    town = Town()
    plant(town, **metadata)
    push(town, "1", after=AFTER)
    assert run(town) is Outcome.FAILED
    assert town.data("web", "after") == [None, "theirs"]


@pytest.mark.parametrize("metadata", [{}, HELM])
def test_what_another_has_made_after_the_plan_is_neither_overwritten_nor_deleted(metadata: dict[str, dict[str, str]]) -> None:
    town = Town()
    push(town, "1", after=AFTER)

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.writes and call.asked.path == f"{MAPS}/web":
            plant(town, **metadata)
        return reply

    town.meet = way
    assert run(town) is Outcome.FAILED
    assert town.data("web", "after") == ["1", "theirs"]
