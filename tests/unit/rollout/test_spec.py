"""A Rollout document -> groups and steps: both dialects, every mistake at once, no shape that breaks the reading."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from handler.model.errors import ManifestInvalid
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.rollout import Check, Rollout
from handler.rollout.fields import Fields, type_of
from handler.rollout.spec import MAX_STEPS, read
from handler.rollout.tables import CheckType, Options, Probe, Scene, SpecError
from handler.run.actions import ACTIONS

PLACE = "deploy/rollout.yaml:1"
KEYS = {
    "grafana/deployment.json": Identity("apps", "Deployment", "default", "grafana"),
    "job.json": Identity("batch", "Job", "shop", "migrate"),
    "job.json!1": Identity("", "Secret", "shop", "migrate"),
    "deployment": Identity("apps", "Deployment", "shop", "api"),
}
SEED = """
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata:
  name: grafana-rollout-0
spec:
  groups:
  - steps:
    - object: "grafana/deployment.json"
      action: "CreateOrUpdate"
"""
OLD = """
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata: {name: jsonnet}
spec:
  groups:
  - name: Rollout Grafana
    steps:
    - object: deployment
      action: CreateOrUpdate
      success:
      - fieldComparisons:
        - {name: Generation correct, path: '{.metadata.generation}', value: {path: '{.status.observedGeneration}'}}
        - {name: No replica unavailable, path: '{.status.unavailableReplicas}', default: 0, value: {static: 0}}
    - object: job.json
      action: CreateIfNotExist
"""
NEW = """
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata: {name: api}
spec:
  parallel: false
  groups:
  - name: migrate
    parallel: true
    steps:
    - name: migrate-db
      object: job.json
      action: CreateOrUpdate
      continueOnError: true
      success:
      - fieldComparisons:
          expectedValues: [{name: done, path: '{.status.succeeded}', default: 0, value: {staticInt64: 1}}]
          timeout: 1h
          failure:
          - {checkName: JobOOMKilled}
        failure:
        - {checkName: slow}
        name: slow
      failure:
      - fieldComparisons:
          expectedValues: [{name: failed, path: '{.status.failed}', default: 0, value: {staticInt64: 1}}]
  - steps:
    - {object: "/grafana/deployment.json!0", action: CreateOrUpdate}
    - {object: ./job.json!1, action: DeleteIfExist}
"""


class Comparisons:
    """A check that keeps what it is given, if it is a list or a mapping."""

    def read(self, raw: Any, field: str) -> Options:
        if not isinstance(raw, dict | list):
            raise SpecError.of(field, f"is {type_of(raw)}")
        return {"given": raw}

    def begin(self, options: Options, scene: Scene) -> Probe:
        raise NotImplementedError


class Named:
    """A check with one required option, and one that a name alone is enough for."""

    def __init__(self, required: bool) -> None:
        self.required = required

    def read(self, raw: Any, field: str) -> Options:
        fields = Fields(raw, field, ("url",))
        url = fields.text("url", required=self.required)
        fields.done()
        return {"url": url}

    def begin(self, options: Options, scene: Scene) -> Probe:
        raise NotImplementedError


CHECKS: Mapping[str, CheckType] = {
    "fieldComparisons": Comparisons(),
    "prometheus": Named(required=True),
    "JobOOMKilled": Named(required=False),
}


def spec(text: str, **changes: Any) -> Rollout:
    return read(Manifest.of(yaml.safe_load(text) | changes, PLACE), KEYS, ACTIONS, CHECKS)


def groups(*steps: Mapping[str, Any]) -> dict[str, Any]:
    return {"groups": [{"steps": list(steps)}]}


def mistakes(**changes: Any) -> list[str]:
    with pytest.raises(ManifestInvalid) as refused:
        spec(SEED, **changes)
    return [str(problem) for problem in refused.value.problems]


def test_the_seeds_own_example() -> None:
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


def test_names_are_given_and_told_apart() -> None:
    step = {"object": "deployment", "action": "CreateOrUpdate"}
    named = {**step, "name": "deployment"}
    found = spec(SEED, spec={"groups": [{"name": "all", "steps": [step, named, step]}, {"name": "all", "steps": [step]}]})
    assert [group.name for group in found.groups] == ["all", "all (2)"]
    assert [step.name for step in found.groups[0].steps] == ["deployment", "deployment (2)", "deployment (3)"]


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


def test_every_mistake_at_once_with_what_is_known_instead() -> None:
    found = mistakes(
        apiVersion="workflow.kubernetes.io/v1",
        spec={
            "groups": [
                {"steps": [{"object": "deploiment", "action": "CreateorUpdate", "sucess": []}], "paralel": True},
                {"name": 7, "steps": [{"action": "Destroy"}, {"object": "job.json", "action": "CreateOrUpdate", "continueOnError": "yes"}]},
            ],
        },
    )
    known, available = ", ".join(sorted(KEYS)), f"available actions are {', '.join(ACTIONS)}"
    assert found == [
        f"{PLACE}: apiVersion: isn't workflow.kubernetes.io/v1alpha1; write apiVersion: workflow.kubernetes.io/v1alpha1",
        f"{PLACE}: spec.groups[0].paralel: unknown key 'paralel'; did you mean parallel? known are: name, parallel, steps",
        f"{PLACE}: spec.groups[0].steps[0].object: unknown object 'deploiment'; did you mean deployment? known are: {known}",
        f"{PLACE}: spec.groups[0].steps[0].action: unknown action 'CreateorUpdate': {available}; did you mean CreateOrUpdate?",
        f"{PLACE}: spec.groups[1].name: is a number, not text; quote it",
        f"{PLACE}: spec.groups[1].steps[0].object: is missing",
        f"{PLACE}: spec.groups[1].steps[0].action: unknown action 'Destroy': {available}",
        f"{PLACE}: spec.groups[1].steps[1].continueOnError: is text, not true or false",
    ]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"spec": None}, "spec: is null, not a mapping"),
        ({"spec": {}}, "spec.groups: names no group; write at least one group with one step"),
        ({"spec": {"groups": [{}]}}, "spec.groups[0].steps: names no step; write its steps, or remove the group"),
        ({"spec": {"groups": ["web"]}}, "spec.groups[0]: is text, not a mapping"),
        ({"spec": {"groups": [{"steps": [None]}]}}, "spec.groups[0].steps[0]: is null, not a mapping"),
        ({"spec": {"groups": {"steps": []}}}, "spec.groups: is a mapping, not a list"),
        ({"metadata": {"name": ["x"]}}, "metadata.name: is a list, not text; quote it"),
        ({"extra": 1}, "extra: unknown key 'extra'; known are: apiVersion, kind, metadata, spec"),
    ],
)
def test_what_has_another_shape_is_said(document: dict[str, Any], said: str) -> None:
    assert f"{PLACE}: {said}" in mistakes(**document)


@pytest.mark.parametrize(
    "step",
    [
        {"success": [{"fieldComparisons": {"reportTimeout": {"database": {"name": "db"}}}}]},
        {"success": [{"fieldComparisons": [], "reportTimeout": {"database": {"name": "db"}}}]},
        {"success": [{"fieldComparisons": {"failure": [{"checkName": "JobOOMKilled", "report": {"database": {}}}]}}]},
        {"failure": [{"checkName": "JobOOMKilled", "report": {"database": {}}}]},
        {"report": {"database": {}}},
    ],
)
def test_reports_to_a_database_are_refused_by_name(step: dict[str, Any]) -> None:
    [said] = mistakes(spec=groups({"object": "deployment", "action": "CreateOrUpdate", **step}))
    assert "report" in said.partition(": ")[2].partition(": ")[0]
    assert "Anneal reports to no database; remove it, and let an outgoing webhook tell" in said


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "success[0]: names no check; known are: fieldComparisons, prometheus, JobOOMKilled"),
        ({"healty": {}}, "success[0].healty: unknown check 'healty'; known are: name, fieldComparisons"),
        ({"prometheus": {"url": "u"}, "JobOOMKilled": {}}, "success[0].prometheus: stands beside JobOOMKilled; write one check an item"),
        ({"prometheus": {"uri": "u"}}, "success[0].prometheus.uri: unknown key 'uri'; did you mean url? known are: url"),
        ("healthy", "success[0]: is text, not a mapping"),
    ],
)
def test_mistakes_of_checks(entry: Any, said: str) -> None:
    found = mistakes(spec=groups({"object": "deployment", "action": "CreateOrUpdate", "success": [entry]}))
    assert any(f"spec.groups[0].steps[0].{said}" in each for each in found), found


def test_two_checks_of_one_name_are_refused_if_they_differ() -> None:
    one, other = ({"name": "errors", "prometheus": {"url": url}} for url in ("a", "b"))
    step = {"object": "deployment", "action": "CreateOrUpdate", "success": [one, other]}
    assert mistakes(spec=groups(step)) == [
        f"{PLACE}: spec.groups[0].steps[0].success[1].prometheus: another check is named errors already; give it a name of its own"
    ]


@pytest.mark.parametrize(
    ("first", "second", "way_out"),
    [
        ("DeleteIfExist", "CreateOrUpdate", "Recreate deletes an object and creates it anew"),
        ("CreateOrUpdate", "CreateIfNotExist", "let one step do all of it"),
        ("Recreate", "Recreate", "one step is enough"),
        ("DeleteIfExist", "DeleteIfExist", "one step is enough"),
    ],
)
def test_steps_that_contradict_each_other_are_refused(first: str, second: str, way_out: str) -> None:
    steps = ({"object": "deployment", "action": action} for action in (first, second))
    [said] = mistakes(spec=groups(*steps))
    assert f"spec.groups[0].steps[1].object: Deployment/shop/api has a step before, which does {first}; " in said
    assert way_out in said


def test_there_is_an_end_to_steps() -> None:
    step = {"object": "deployment", "action": "CreateOrUpdate"}
    assert len(spec(SEED, spec=groups(*[step] * MAX_STEPS)).steps) == MAX_STEPS
    for many in (groups(*[step] * (MAX_STEPS + 1)), {"groups": [{"steps": [step] * 501}, {"steps": [step] * 500}]}):
        said = "spec.groups: have 1,001 steps together; at most 1,000 are read; split the target"
        assert mistakes(spec=many) == [f"{PLACE}: {said}"]
    assert "groups: has 1,001 items; at most 1,000 are read" in mistakes(spec={"groups": [{}] * 1001})[0]


def test_so_many_mistakes_are_counted() -> None:
    found = mistakes(spec=groups(*[{"object": "nowhere", "action": "Nothing"}] * 100))
    assert len(found) == 101
    assert found[-1] == f"{PLACE}: Rollout: 100 more mistakes are not shown"


def test_text_that_a_terminal_would_obey_is_refused_and_not_shown() -> None:
    found = mistakes(spec=groups({"object": "\x1b[2J", "action": "x\ny", "a\x1b": 1}))
    assert not any("\x1b" in each or "\n" in each for each in found)
    assert any("holds characters that can't be shown" in each for each in found)


HOSTILE: list[Any] = [None, True, 0, -1, 1.5, "", "x", "job.json", "CreateOrUpdate", "é" * 5000, [], {}, [[]], [None], {"a": []}, {"": {}}]
WORDS = [
    *("apiVersion", "kind", "metadata", "spec", "groups", "steps", "name", "parallel", "object", "action", "success", "failure"),
    *("continueOnError", "fieldComparisons", "prometheus", "JobOOMKilled", "checkName", "report", "reportTimeout", "url", "x"),
]


def anything(rng: random.Random, depth: int) -> Any:
    """Return a value that looks a little like a Rollout."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(HOSTILE)
    if rng.random() < 0.4:
        return [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(WORDS): anything(rng, depth - 1) for _ in range(rng.randrange(5))}


def broken(rng: random.Random, value: Any) -> Any:
    """Return a good document with something in it replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return {**value, key: broken(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        return [*value[:index], broken(rng, value[index]), *value[index + 1 :]]
    return anything(rng, 3)


@pytest.mark.parametrize("seed", range(20))
def test_no_document_breaks_the_reading(seed: int) -> None:
    rng = random.Random(seed)
    good = [yaml.safe_load(text) for text in (SEED, OLD, NEW)]
    read_well = 0
    for _ in range(150):
        body = rng.choice(good) | {"spec": broken(rng, rng.choice(good)["spec"]) if rng.random() < 0.7 else anything(rng, 6)}
        with contextlib.suppress(ManifestInvalid):
            read(Manifest.of(body, PLACE), KEYS, ACTIONS, CHECKS)
            read_well += 1
    assert read_well < 100
