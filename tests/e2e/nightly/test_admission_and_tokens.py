"""What the control plane itself does to a run: admission policies, kinds that vanish."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml

from handler.model.result import Outcome, Result
from tests.e2e.documents import config_map, definition, offer
from tests.e2e.one_target import DONE, Shop, told
from tests.e2e.served_kinds import until_served
from tests.e2e.test_admission_and_tokens import ALLOWED, FORBIDDEN, policy
from tests.patience import until


@pytest.fixture
def forbid(shop: Shop) -> Iterator[Callable[[str], None]]:
    """Forbid ConfigMaps for which an expression isn't true; wait until the API server knows. An empty one forbids nothing any more."""
    made = policy(shop, "true")

    def is_known(*, forbidden: bool) -> bool:
        probe = yaml.safe_dump(config_map(shop.name, "probe", {"key": "forbidden"}))
        done = shop.kubectl.tried("apply", "--server-side", "-f", "-", given=probe)
        return FORBIDDEN in done.stderr if forbidden else done.returncode == 0

    def change(expression: str) -> None:
        if expression:
            shop.kubectl.apply(*policy(shop, expression))
        else:
            remove()
        until(lambda: is_known(forbidden=bool(expression)))
        shop.kubectl.run("delete", "configmap", "probe", "-n", shop.name, "--ignore-not-found")

    def remove() -> None:
        for document in reversed(made):
            shop.kubectl.run("delete", document["kind"], shop.name, "--ignore-not-found")

    yield change
    remove()


def test_a_denial_by_admission_after_the_dry_run_leaves_an_attempt_that_the_next_run_closes(
    shop: Shop, forbid: Callable[[str], None]
) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    shop.applied()
    forbid(f"request.dryRun || {ALLOWED}")
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "b", {"key": "forbidden"}))
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "author"), told(result)
    assert f"ConfigMap/{shop.name}/b" in result.message
    assert shop.live(config_map(shop.name, "gone")), "after a failed apply nothing is pruned"
    assert shop.state().attempt
    forbid("")
    shop.applied("tick")
    shop.assert_converged()


@pytest.mark.parametrize("expression", ["request.operation == 'CREATE' && object.data['key'] != 'forbidden'", "has(object.data.by)"])
def test_a_policy_that_denies_any_write_blames_no_field(shop: Shop, forbid: Callable[[str], None], expression: str) -> None:
    """What would go, too, is no reason for it; where it is the reason that field is named with its line for git."""
    theirs = config_map(shop.name, "a", {"key": "1", "by": "hand"}, labels={"old": "label"})
    shop.kubectl.apply(theirs)
    forbid(expression)
    before = shop.versions([theirs])
    shop.push(config_map(shop.name, "a", {"key": "1"}))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
    assert FORBIDDEN in result.message
    assert ("live alone has" in result.message) is ("has(" in expression), result.message
    if "has(" in expression:
        assert "live alone has data.by: hand (by kubectl-client-side-apply), and" in result.message
        assert "write into it data: {by: hand}" in result.message
    assert shop.versions([theirs]) == before
    forbid("")


# --- kinds that vanish
def test_a_deleted_crd_is_applied_again_with_its_custom_resources(shop: Shop) -> None:
    declared = [definition(shop.group), offer(shop.group, shop.name, "spring"), config_map(shop.name, "a")]
    shop.push(*declared)
    shop.applied()
    shop.kubectl.run("delete", "crd", f"offers.{shop.group}", "--wait=true")
    until_served(shop, "v1", served=False)
    kept = shop.versions([declared[2]])
    ends: list[Result] = []

    def is_done() -> bool:
        ends.append(shop.run("tick" if ends else "drift"))
        assert ends[-1].outcome in DONE or ends[-1].who == "nobody", told(ends[-1])
        return ends[-1].outcome in DONE

    until(is_done, lambda: told(ends[-1]))
    shop.assert_converged()
    assert shop.versions([declared[2]]) == kept
