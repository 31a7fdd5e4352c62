"""What explains that a hook or a step isn't there yet, shown as its message while it is waited for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from handler.config.settings import Wait
from handler.model.result import Outcome
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import deployment
from tests.e2e.hook_jobs import hook
from tests.e2e.one_target import Shop, told
from tests.e2e.rollouts import group, step
from tests.e2e.workload_status import fated, made_ready
from tests.patience import PATIENCE, until


def message(shop: Shop, name: str) -> str:
    """Return what the record says of a step, or of a hook by its object's name; empty: nothing yet."""
    state = shop.handler.store(shop.target).read().state
    steps = state.rollout.steps if state and state.rollout else ()
    return next((each.message for each in steps if each.step.rpartition("/")[2] == name), "")


def test_a_hook_and_steps_with_and_without_checks_tell_what_explains_them(open_shop: Open) -> None:
    shop = rollouts.opened(open_shop)
    shop.configure(wait=Wait(600.0, 600.0))
    migrate = hook(shop, "migrate", "PreSync")
    migrate["spec"]["template"]["spec"]["nodeSelector"] = {f"anneal.dev/{shop.name}": "here"}
    api, web = fated(deployment(shop.name, "api", replicas=1), "crash-loop"), fated(deployment(shop.name, "web", replicas=1), "no-image")
    steps = step("CreateOrUpdate", api, success=[{"healthy": {}}]), step("CreateOrUpdate", web)
    rollouts.push(shop, [migrate, api, web], group("roll", *steps, parallel=True))
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(shop.run)
        try:
            until(lambda: run.done() or "Unschedulable" in message(shop, "migrate"), lambda: str(rollouts.progress(shop)))
            assert not run.done(), told(run.result())
        finally:
            node = shop.kubectl("get", "nodes")["items"][0]["metadata"]["name"]
            shop.kubectl.run("label", "node", node, f"anneal.dev/{shop.name}=here")
        try:
            words = {"api": "CrashLoopBackOff", "web": "Warning Failed: “Failed to pull image"}
            until(
                lambda: run.done() or all(word in message(shop, name) for name, word in words.items()),
                lambda: str(rollouts.progress(shop)),
            )
            assert not run.done(), told(run.result())
            assert message(shop, "migrate") == ""
            assert all("0 of 1 replica" in message(shop, name) for name in words)
        finally:
            for name in ("api", "web"):
                made_ready(shop.kubectl, shop.name, name)
        result = run.result(PATIENCE)
    assert result.outcome is Outcome.APPLIED, told(result)
    assert not any(word in message(shop, name) for name, word in words.items())
