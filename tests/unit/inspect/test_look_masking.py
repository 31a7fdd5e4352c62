"""What the target's Secrets hold, in git or live, is in no text that repeats it: of a gap, of orphans, of a plan, of a drift record."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import HoldAbove, Prune, Settings, Target
from handler.inspect.facts import facts
from handler.inspect.inspector import Inspector
from handler.inspect.look import Ask
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.to_json import plain
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, SHOP, cluster, engine, state_of
from tests.fakes.git_host import GitHost

MAPS, SECRETS = "/api/v1/namespaces/shop/configmaps", "/api/v1/namespaces/shop/secrets"
IN_GIT, ROTATED, BY_HAND = "hunter2-in-git", "hunter2-before-it", "hunter2-by-hand"


def encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": data}


def secret(value: str) -> dict[str, Any]:
    metadata = {"name": "door", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"dsn": f"postgres://web:{value}@db/shop"}}


class Town:
    """A target whose ConfigMaps repeat what its Secret holds: today's value, the one before, one that is only live."""

    def __init__(self, settings: Settings = ONE) -> None:
        self.server, self.host = cluster(), GitHost()
        self.refuse: Callable[[Call], str] = lambda _: ""

        def way(call: Call, do: Callable[[], Reply]) -> Reply:
            said = self.refuse(call)
            return (422, {"kind": "Status", "code": 422, "reason": "Invalid", "message": said}, {}) if said else do()

        self.handler = engine(self.server, self.host, settings, way=way)
        self.declare(secret(ROTATED), config_map("web", pw=f"pw={ROTATED}", mode="blue"), config_map("gone"))
        assert self.handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
        self.edit(SECRETS, "door", {"data": {"other": encoded(BY_HAND)}})
        annotations = {"acme.io/was": f"{ROTATED} {encoded(BY_HAND)}", "helm.sh/resource-policy": f"keep-{BY_HAND}"}
        self.edit(MAPS, "web", {"data": {"mode": f"green {BY_HAND}"}, "metadata": {"annotations": annotations}})
        self.declare(secret(IN_GIT), config_map("web", pw=f"pw={IN_GIT}", mode="blue", same="plain"))

    def declare(self, *bodies: dict[str, Any]) -> None:
        self.host.push(self.host.commit({f"shop/{each['kind']}-{each['metadata']['name']}.yaml": json.dumps(each) for each in bodies}))

    def edit(self, path: str, name: str, body: dict[str, Any], manager: str = "kubectl-edit") -> None:
        self.server.must(Asked("PATCH", f"{path}/{name}", {"fieldManager": manager}, body, "application/merge-patch+json", ""))


def silent(found: Any) -> str:
    text = json.dumps(plain(found))
    shown = [each for value in (IN_GIT, ROTATED, BY_HAND) for each in (value, encoded(value)) if each in text]
    assert shown == [], text
    return text


def test_neither_a_gap_nor_orphans_repeat_what_a_secret_holds_in_git_or_live() -> None:
    town = Town()
    town.edit(MAPS, "gone", {"metadata": {"finalizers": [f"acme.io/{BY_HAND}"]}})
    inspector = Inspector(town.handler)
    gap = inspector.gap(Ask("shop"))
    silent(facts(gap))
    silent(facts(inspector.orphans("shop")))
    web = next(each for each in gap.objects if each.object == "ConfigMap/shop/web")
    rows = {each.path: (str(each.state), each.declared, each.live) for each in web.fields}
    assert rows["data.pw"] == ("differs", "***", "***")
    assert rows["data.mode"] == ("differs", "***", "***"), "one side holds a secret"
    assert rows["data.same"] == ("differs", "plain", "")
    assert rows["metadata.annotations.acme.io/was"] == ("undeclared", "", "***")


def test_an_equal_field_that_repeats_a_secret_is_not_said_to_be_equal() -> None:
    town = Town()
    town.declare(secret(ROTATED), config_map("web", pw=f"pw={ROTATED}", mode="blue"))
    (web,) = Inspector(town.handler).gap(Ask("shop", object="ConfigMap/shop/web")).objects
    assert [each.path for each in web.fields if each.path == "data.pw"] == []


def test_a_plan_and_what_a_run_prints_are_masked_where_a_person_reads_them() -> None:
    town = Town()
    planned = town.handler.run(Job("shop", "oneoff", dry_run=True))
    assert planned.outcome is Outcome.PLANNED
    silent(without_manifests(planned))
    told: list[Any] = []
    town.handler._options = replace(town.handler._options, shows=True, announce=told.append)
    town.handler._made.clear()
    applied = town.handler.run(Job("shop", "push"))
    assert applied.outcome is Outcome.APPLIED
    silent(without_manifests(applied))
    assert told


def without_manifests(result: Result) -> Result:
    plan = result.plan
    assert plan
    stages = tuple(tuple(replace(each, manifest=None, managed_fields=b"") for each in stage) for stage in plan.stages)
    written = tuple(replace(each, manifest=None, managed_fields=b"") for each in result.written)
    return replace(result, plan=replace(plan, stages=stages), written=written)


def test_what_drift_records_is_masked() -> None:
    target = replace(ONE.targets[0], drift="report")
    town = Town(replace(ONE, targets=(target,)))
    town.declare(secret(ROTATED), config_map("web", pw=f"pw={ROTATED}", mode="blue"))
    assert town.handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
    town.edit(MAPS, "web", {"data": {"mode": f"green {ROTATED}"}})
    assert town.handler.run(Job("shop", "drift")).outcome is Outcome.DRIFTED
    assert "***" in silent(state_of(town.handler).drift)


def test_a_refusal_that_repeats_a_live_value_is_masked() -> None:
    town = Town()
    town.refuse = lambda call: (
        f"spec: Invalid value: {BY_HAND}" if call.asked.method == "PATCH" and call.asked.path == f"{MAPS}/web" else ""
    )
    seen = Inspector(town.handler).gap(Ask("shop")).seen
    assert "Invalid value: ***" in silent((seen.message, seen.problems))


def test_what_is_held_is_known_by_the_same_name_though_its_values_are_masked() -> None:
    target = Target("shop", SHOP, ("shop",), path="shop", prune=Prune(hold_above=HoldAbove(0, 0.0)))
    town = Town(replace(ONE, targets=(target,)))
    town.edit(MAPS, "web", {"data": {"more": BY_HAND}}, "anneal")
    gap = Inspector(town.handler).gap(Ask("shop"))
    held = town.handler.run(Job("shop", "push"))
    assert held.outcome is Outcome.HELD
    assert held.plan
    assert held.plan.hold
    assert gap.seen.hold
    assert gap.seen.hold["id"] == held.plan.hold.id
    assert any(" without " in name for _, name, _ in held.plan.hold.changes)
    assert {each.object for each in gap.objects if each.held} == {"ConfigMap/shop/web", "ConfigMap/shop/gone", "Secret/shop/door"}


def test_where_secrets_of_a_namespace_cant_be_read_no_value_is_shown() -> None:
    before = replace(ONE, targets=(Target("shop", SHOP, ("shop", "old"), path="shop"),))
    server, host = cluster("shop", "old"), GitHost()
    bodies = [secret(ROTATED), config_map("web", mode="blue")]
    bodies[0]["metadata"]["namespace"] = "old"
    host.push(host.commit({f"shop/{number}.yaml": json.dumps(each) for number, each in enumerate(bodies)}))
    assert engine(server, host, before).run(Job("shop", "push")).outcome is Outcome.APPLIED
    server.must(Asked("PATCH", f"{MAPS}/web", {}, {"data": {"mode": ROTATED}}, "application/merge-patch+json", ""))
    host.push(host.commit({"shop/1.yaml": json.dumps(bodies[1])}))

    def namespaced(call: Call, do: Callable[[], Reply]) -> Reply:
        kind = call.asked.path.rpartition("/")[2]
        if kind not in ("configmaps", "secrets") or ("/old/" not in call.asked.path and "/namespaces/" in call.asked.path):
            return do()
        said = f'{kind} is forbidden: User "shop" cannot list resource "{kind}" in API group ""'
        return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": said}, {}

    gap = Inspector(engine(server, host, way=namespaced)).gap(Ask("shop"))
    assert "values are hidden: Secrets of Namespace/old can't be read to mask them" in gap.seen.notes
    (web,) = [each for each in gap.objects if each.object == "ConfigMap/shop/web"]
    assert [(each.path, each.declared, each.live) for each in web.fields if each.path == "data.mode"] == [("data.mode", "***", "***")]
    silent(facts(gap))


def test_a_run_that_nobody_reads_makes_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    town = Town()
    monkeypatch.setattr("handler.engine.run.shown_plan.ShownPlan.text", lambda *_: pytest.fail("a run paid"))
    assert town.handler.run(Job("shop", "push")).outcome is Outcome.APPLIED
