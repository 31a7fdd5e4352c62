"""`healthCheckExprs` on the real cluster: a custom resource whose status a test writes, waited for by the operator's expressions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from handler.config.settings import HealthCheckExpr, Wait
from handler.model.result import Outcome, Result
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, definition, offer
from tests.e2e.one_target import Shop, told
from tests.e2e.rollouts import group, step
from tests.patience import PATIENCE, until

PATIENT = Wait(600.0, 600.0)


def reporting(group: str) -> Document:
    """A kind of whose status nothing but its own controller knows."""
    crd = definition(group)
    version = crd["spec"]["versions"][0]
    version["subresources"] = {"status": {}}
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return crd


def judged_by(shop: Shop, wait: Wait = PATIENT, current: str = "status.phase == 'Open'", **expressions: str) -> None:
    """Let the shop's Offers be judged by expressions."""
    entry = HealthCheckExpr(f"{shop.group}/v1", current, kind="Offer", **expressions)
    shop.configure(wait=wait, health_check_exprs=(entry,))


def report(shop: Shop, **status: Any) -> None:
    """Be the controller of the only Offer."""
    place = [f"offers.{shop.group}", "tea", "-n", shop.name, "--subresource=status", "--type=merge"]
    shop.kubectl.run("patch", *place, "-p", json.dumps({"status": status}))


def offered(shop: Shop, price: int = 1) -> tuple[Document, Document]:
    return reporting(shop.group), offer(shop.group, shop.name, "tea", price)


def unhealthy(shop: Shop) -> str:
    state = shop.handler.store(shop.target).read().state
    return "\n".join(state.status.unhealthy) if state else ""


def _is_told(running: Future[Result], expected: str, seen: Callable[[], str]) -> bool:
    return running.done() or expected in seen()


def run_beside(shop: Shop, *then: tuple[str, dict[str, Any]], seen: Callable[[Shop], str] = unhealthy) -> Result:
    """Run the shop; each time that the record says of the Offer what is expected, its controller reports the next status."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(shop.handler.run, shop.job(), stop)
        try:
            for expected, status in then:
                until(partial(_is_told, running, expected, partial(seen, shop)), partial(seen, shop))
                assert not running.done(), told(running.result())
                report(shop, **status)
            return running.result(PATIENCE)
        finally:
            stop.set()


def test_a_wait_goes_on_until_the_expression_of_a_healthy_one_holds(shop: Shop) -> None:
    judged_by(shop, in_progress="status.phase == 'Priced'", failed="status.phase == 'Refused'")
    shop.push(*offered(shop))
    result = run_beside(
        shop,
        ("`inProgress` of healthCheckExprs can't be evaluated: “no such field: status”", {"phase": "Priced", "message": "asks the vendor"}),
        ("`inProgress` of healthCheckExprs holds: Priced: “asks the vendor”", {"phase": "Listed"}),
        ("`current` of healthCheckExprs doesn't hold: Listed: “asks the vendor”", {"phase": "Open"}),
    )
    assert result.outcome is Outcome.APPLIED, told(result)
    state = shop.state()
    assert (state.commit, state.attempt, state.status.unhealthy) == (shop.head, None, ())


def test_what_an_expression_calls_failed_fails_the_rollout_with_the_controllers_words(shop: Shop) -> None:
    failed = "status.conditions.exists(e, e.type == 'Sold' && e.reason == 'NoVendor')"
    judged_by(shop, failed=failed, current="status.?sold.orValue(false)")
    shop.push(*offered(shop))
    refused = [{"type": "Sold", "status": "False", "reason": "NoVendor", "message": "nobody sells tea"}]
    result = run_beside(shop, ("`failed` of healthCheckExprs can't be evaluated: “no such field: status”", {"conditions": refused}))
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert "tea: failed: `failed` of healthCheckExprs holds: Sold is False: NoVendor: “nobody sells tea”" in result.message
    assert shop.state().attempt is not None, "the commit isn't recorded"
    report(shop, sold=True, conditions=[])
    mended = shop.run("tick", force=True)
    assert mended.outcome is Outcome.APPLIED, told(mended)
    assert shop.state().commit == shop.head


@pytest.mark.parametrize(
    ("current", "said"),
    [
        ("status.list.exists(a, status.list.exists(b, a + b < 0))", "takes more than 10,000 steps on it"),
        ("status.a.replace('a', status.a).replace('a', status.a).replace('a', status.a) == ''", ": the evaluation takes more "),
    ],
)
def test_an_expression_that_takes_too_much_leaves_the_object_unknown_and_the_wait_says_so(shop: Shop, current: str, said: str) -> None:
    """What the expression is about is the object's owner's: a status that was small when it was written has grown."""
    judged_by(shop, current="has(status.list)")
    shop.push(*offered(shop))
    first = run_beside(shop, ("no such field: status", {"list": [*range(2000)], "a": "a" * 1000}))
    assert first.outcome is Outcome.APPLIED, told(first)
    judged_by(shop, wait=Wait(600.0, 2.0), current=current)
    shop.push(*offered(shop), config_map(shop.name, "a"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert "isn't healthy, and nothing has changed for 2s: " in result.message
    assert said in result.message


def test_a_health_check_expr_stands_above_the_kstatus_rules_of_its_kind(shop: Shop) -> None:
    entry = HealthCheckExpr("v1", "data.state == 'open'", kind="ConfigMap", failed="data.state == 'closed'")
    shop.configure(wait=PATIENT, health_check_exprs=(entry,))
    shop.push(config_map(shop.name, "gate", {"state": "open"}))
    shop.applied()
    shop.push(config_map(shop.name, "gate", {"state": "closed"}))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert f"ConfigMap/{shop.name}/gate: failed: `failed` of healthCheckExprs holds" in result.message


def test_a_function_judges_health_by_health_check_exprs_too(shop: Shop) -> None:
    judged_by(shop)
    shop.push(*offered(shop))
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)
    first = shop.run()
    assert first.outcome is Outcome.WAITING, told(first)
    assert "`current` of healthCheckExprs can't be evaluated: “no such field: status”" in unhealthy(shop)
    report(shop, phase="Open")
    second = shop.run("tick")
    assert second.outcome is Outcome.APPLIED, told(second)


def test_the_healthy_check_of_a_step_uses_health_check_exprs(open_shop: Open) -> None:
    shop = rollouts.opened(open_shop)
    judged_by(shop)
    crd, tea = offered(shop)
    checked = step("CreateOrUpdate", tea, success=[{"healthy": {}}])
    rollouts.push(shop, [crd, tea], group("kinds", step("CreateOrUpdate", crd)), group("offers", checked))

    def seen(shop: Shop) -> str:
        state = shop.handler.store(shop.target).read().state
        return str([each.message for each in state.rollout.steps]) if state and state.rollout else ""

    result = run_beside(shop, ("can't be evaluated: “no such field: status”", {"phase": "Open"}), seen=seen)
    assert result.outcome is Outcome.APPLIED, told(result)
