"""A Rollout document -> groups and steps, in both dialects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.manifest import Manifest
from handler.model.rollout import Check, Phase
from handler.rollout.canary import FAILURE_LIMIT
from handler.rollout.checks import CHECKS
from handler.rollout.spec import read
from tests.unit.rollout.documents import KEYED, KEYS, NEW, OLD, PLACE, SEED, groups, mistakes, spec


def test_the_upstream_rollout_example() -> None:
    found = spec(SEED)
    assert (found.name, found.place, found.parallel) == ("grafana-rollout-0", PLACE, False)
    [group] = found.groups
    [step] = group.steps
    assert (group.name, group.parallel) == ("group 1", False)
    assert (step.name, step.action, step.identity) == (
        "grafana/deployment.json",
        "CreateOrUpdate",
        KEYS["grafana/deployment.json"],
    )


def test_the_old_dialect_runs_the_steps_of_a_group_at_once() -> None:
    [group] = spec(OLD).groups
    assert (group.name, group.parallel) == ("Rollout Grafana", True)
    [check] = group.steps[0].success
    assert (check.type, check.name, len(check.options["given"])) == ("fieldComparisons", "fieldComparisons", 2)
    assert [step.action for step in group.steps] == ["CreateOrUpdate", "CreateIfNotExist"]


@pytest.mark.parametrize(
    "newer",
    [
        {"name": "first", "object": "job.json", "action": "CreateIfNotExist"},
        {"object": "job.json", "action": "CreateIfNotExist", "continueOnError": False},
        {"object": "job.json", "action": "CreateIfNotExist", "success": [{"fieldComparisons": {"expectedValues": []}}]},
        {"object": "job.json", "action": "CreateIfNotExist", "success": [{"prometheus": {"url": "u"}}]},
    ],
)
def test_one_word_of_the_new_dialect_makes_the_document_new(newer: dict[str, Any]) -> None:
    old = {"object": "deployment", "action": "CreateOrUpdate", "success": [{"fieldComparisons": []}]}
    assert spec(SEED, spec=groups(old)).groups[0].parallel is True
    assert spec(SEED, spec=groups(old, newer)).groups[0].parallel is False


def test_parallel_is_what_is_written() -> None:
    old = {"object": "deployment", "action": "CreateOrUpdate", "success": [{"fieldComparisons": []}]}
    found = spec(SEED, spec={"parallel": True, "groups": [{"parallel": True, "steps": [old]}, {"steps": [old]}]})
    assert (found.parallel, [group.parallel for group in found.groups]) == (True, [True, False])


def test_the_new_dialect() -> None:
    found = spec(NEW)
    first, second = found.groups
    assert [(group.name, group.parallel) for group in found.groups] == [("migrate", True), ("group 2", False)]
    step = first.steps[0]
    assert (step.name, step.continue_on_error) == ("migrate-db", True)
    assert [(check.type, check.name) for check in step.success] == [("fieldComparisons", "slow")]
    assert "failure" not in step.success[0].options["given"]
    assert [(check.type, check.name) for check in step.failure] == [
        ("fieldComparisons", "slow"),
        ("JobOOMKilled", "JobOOMKilled"),
        ("fieldComparisons", "fieldComparisons"),
    ]
    assert [step.identity for step in second.steps] == [KEYS["grafana/deployment.json"], KEYS["job.json!1"]]


def test_steps_and_groups_without_a_name_get_a_unique_one() -> None:
    step = {"object": "deployment", "action": "CreateOrUpdate"}
    named = {**step, "name": "deployment"}
    found = spec(SEED, spec={"groups": [{"name": "all", "steps": [step, named, step]}, {"name": "all", "steps": [step]}]})
    assert [group.name for group in found.groups] == ["all", "all (2)"]
    assert [step.name for step in found.groups[0].steps] == ["deployment", "deployment (2)", "deployment (3)"]


@pytest.mark.parametrize("phase", Phase)
def test_no_group_has_the_name_by_which_hooks_are_recorded(phase: Phase) -> None:
    step = {"object": "deployment", "action": "CreateOrUpdate", "name": "Job/shop/migrate"}
    found = spec(SEED, spec={"groups": [{"name": str(phase), "steps": [step]}]})
    assert [group.name for group in found.groups] == [f"{phase} (2)"]


def test_a_check_is_named_by_a_check_before_it() -> None:
    first = {"object": "deployment", "action": "CreateOrUpdate", "success": [{"name": "errors", "prometheus": {"url": "u"}}]}
    second = {"object": "job.json", "action": "CreateOrUpdate", "failure": [{"checkName": "errors"}]}
    found = spec(SEED, spec=groups(first, second))
    assert found.steps[1].failure == (Check("prometheus", "errors", {"url": "u"}),)
    [said] = mistakes(spec=groups(second, first))
    assert said.startswith(f"{PLACE}: spec.groups[0].steps[0].failure[0].checkName: unknown check 'errors'; ")
    assert said.endswith("known are: fieldComparisons, prometheus, JobOOMKilled")


def test_a_type_that_needs_options_is_not_named_alone() -> None:
    step = {"object": "deployment", "action": "CreateOrUpdate", "failure": [{"checkName": "prometheus"}]}
    assert mistakes(spec=groups(step)) == [f"{PLACE}: spec.groups[0].steps[0].failure[0].checkName.url: is missing"]


def test_the_metrics_of_a_canarys_success_have_a_limit_of_failures_and_no_others() -> None:
    """What its author writes stays; a check of failure ends the step the first time it holds."""
    errors, slow = {"query": "errors", "is": "< 1"}, {"query": "slow", "is": "< 1", "failureLimit": 7}
    checks = {"success": [{"name": "errors", "prometheus": errors}, {"prometheus": slow}, {"healthy": {}}]}
    guard = {"failure": [{"prometheus": errors}]}
    acted = {"Canary": "deployment", "CreateOrUpdate": "grafana/deployment.json"}
    steps = [{"object": key, "action": action, **checks, **guard} for action, key in acted.items()]
    found = read(Manifest.of(yaml.safe_load(SEED) | {"spec": groups(*steps)}, PLACE), KEYED, ACTIONS, CHECKS)
    limits = {step.action: [check.options.get("failureLimit") for check in (*step.success, *step.failure)] for step in found.steps}
    assert limits == {"Canary": [FAILURE_LIMIT, 7, None, 0], "CreateOrUpdate": [0, 7, None, 0]}


def test_a_step_over_a_list_is_a_step_over_each_of_its_items() -> None:
    """As upstream's code expands it."""
    found = spec(SEED, spec=groups({"object": "list.json", "action": "Recreate", "failure": [{"checkName": "JobOOMKilled"}]}))
    assert [(step.name, step.object, step.identity) for step in found.steps] == [
        ("list.json[0]", "list.json", KEYS["job.json"]),
        ("list.json[1]", "list.json", KEYS["job.json!1"]),
    ]
    assert all(step.action == "Recreate" and step.failure for step in found.steps)
    again = {"object": "job.json!1", "action": "CreateOrUpdate"}
    [said] = mistakes(spec=groups({"object": "list.json", "action": "Recreate"}, again))
    assert "spec.groups[0].steps[1].object: Secret/shop/migrate has a step before, which does Recreate" in said
