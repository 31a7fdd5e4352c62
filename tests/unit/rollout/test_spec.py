"""A Rollout document -> groups and steps, in both dialects; every mistake at once, and no shape that breaks the reading."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.errors import ManifestInvalid
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.rollout import MAX_STEPS, Check, Phase, Rollout
from handler.rollout.canary import FAILURE_LIMIT
from handler.rollout.checks import CHECKS as LITERAL
from handler.rollout.spec import read
from tests.unit.rollout.documents import CHECKS, KEYED, KEYS, LISTED, NEW, OLD, PLACE, SEED, groups, mistakes, spec

pytestmark = pytest.mark.slow


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
    found = read(Manifest.of(yaml.safe_load(SEED) | {"spec": groups(*steps)}, PLACE), KEYED, ACTIONS, LITERAL)
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
    known, available = ", ".join(sorted(LISTED)), f"available actions are {', '.join(ACTIONS)}"
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


@pytest.mark.parametrize(("number", "seen"), [(10**4000, "too large"), (-(10**4000), "too small")], ids=["huge", "tiny"])
def test_numbers_of_thousands_of_digits_are_refused_in_a_few_words(number: int, seen: str) -> None:
    """YAML reads them as no whole numbers; another renderer may."""
    step = {"object": "deployment", "action": "Canary", "steps": [{"weight": number, "for": number}]}
    assert mistakes(spec={"groups": [{"steps": [step]}]}) == [
        f"{PLACE}: spec.groups[0].steps[0].steps[0].weight: is {seen}; expected 1 to 100",
        f"{PLACE}: spec.groups[0].steps[0].steps[0].for: expected a duration such as 30s, 5m or 1h30m",
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
def test_fields_of_another_type_are_refused(document: dict[str, Any], said: str) -> None:
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
    assert "Anneal reports to no database; remove it; `anneal rollout TARGET` and the record" in said


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


@pytest.mark.parametrize("name", ["failureLimit", "progressTimeout"])
@pytest.mark.parametrize("beside", [True, False])
def test_success_only_options_are_refused_under_failure(name: str, beside: bool) -> None:
    """There, and where upstream's newer form lets failures of an entry stand."""
    check = {"prometheus": {"query": "errors", "is": "> 1", name: 60}}
    more = {"failure": [check]} if beside else {"success": [{"healthy": {}, "failure": [check]}]}
    place = "failure[0]" if beside else "success[0].failure[0]"
    body = yaml.safe_load(SEED) | {"spec": groups({"object": "deployment", "action": "Canary", **more})}
    with pytest.raises(ManifestInvalid) as refused:
        read(Manifest.of(body, PLACE), KEYED, ACTIONS, LITERAL)
    [said] = map(str, refused.value.problems)
    assert said.startswith(f"{PLACE}: spec.groups[0].steps[0].{place}.prometheus.{name}: is of `success`: ")
    assert said.endswith("a check of `failure` ends the step as soon as it holds; remove it; `for` says how long it must hold")


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


def test_the_number_of_steps_has_a_limit() -> None:
    step = {"object": "deployment", "action": "CreateOrUpdate"}
    assert len(spec(SEED, spec=groups(*[step] * MAX_STEPS)).steps) == MAX_STEPS
    for many in (groups(*[step] * (MAX_STEPS + 1)), {"groups": [{"steps": [step] * 501}, {"steps": [step] * 500}]}):
        said = "spec.groups: have 1,001 steps together; at most 1,000 are read; split the target"
        assert mistakes(spec=many) == [f"{PLACE}: {said}"]
    assert "groups: has 1,001 items; at most 1,000 are read" in mistakes(spec={"groups": [{}] * 1001})[0]


def test_so_many_mistakes_are_not_all_shown() -> None:
    found = mistakes(spec=groups(*[{"object": "nowhere", "action": "Nothing"}] * 80))
    assert len(found) == 101
    assert found[-1] == f"{PLACE}: Rollout: 60 more mistakes are not shown"
    endless = mistakes(spec=groups(*[{"object": "nowhere", "action": "Nothing"}] * 1000))
    assert len(endless) == 101


def test_unknown_keys_of_one_mapping_are_not_all_named() -> None:
    found = mistakes(spec=groups({"object": "deployment", "action": "CreateOrUpdate", **{f"x{number}": 1 for number in range(50)}}))
    assert len(found) == 6
    assert found[-1] == f"{PLACE}: spec.groups[0].steps[0]: has 45 more keys that are not known"


def test_of_many_objects_some_are_named() -> None:
    keys = {f"web-{number:04}.yaml": KEYED["deployment"] for number in range(30_000)}
    step = {"object": "web-0003.yml", "action": "CreateOrUpdate"}
    for count, said in ((30, "did you mean web-0003.yaml? known are: web-0000.yaml"), (30_000, "known are: web-0000.yaml")):
        with pytest.raises(ManifestInvalid) as refused:
            read(Manifest.of(yaml.safe_load(SEED) | {"spec": groups(step)}, PLACE), dict(list(keys.items())[:count]), ACTIONS, CHECKS)
        assert f"steps[0].object: unknown object 'web-0003.yml'; {said}" in str(refused.value)
        assert str(refused.value).endswith(f"web-0019.yaml, and {count - 20:,} more")


def test_text_that_a_terminal_would_obey_is_refused_and_not_shown() -> None:
    found = mistakes(spec=groups({"object": "\x1b[2J", "action": "x\ny", "a\x1b": 1}))
    assert not any("\x1b" in each or "\n" in each for each in found)
    assert any("holds characters that can't be shown" in each for each in found)


HOSTILE: list[Any] = [None, True, 0, -1, 1.5, "", "x", "job.json", "CreateOrUpdate", "é" * 5000, [], {}, [[]], [None], {"a": []}, {"": {}}]
WORDS = [
    *("apiVersion", "kind", "metadata", "spec", "groups", "steps", "name", "parallel", "object", "action", "success", "failure"),
    *("continueOnError", "fieldComparisons", "prometheus", "JobOOMKilled", "checkName", "report", "reportTimeout", "url", "x"),
    *("healthy", "jobComplete", "expectedValues", "path", "value", "static", "staticInt64", "default", "timeout", "query", "weight", "for"),
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
    rng, checks = random.Random(seed), (CHECKS, LITERAL)[seed % 2]
    good = [yaml.safe_load(text) for text in (SEED, OLD, NEW)]
    read_well = 0
    for _ in range(150):
        body = rng.choice(good) | {"spec": broken(rng, rng.choice(good)["spec"]) if rng.random() < 0.7 else anything(rng, 6)}
        with contextlib.suppress(ManifestInvalid):
            read(Manifest.of(body, PLACE), KEYED, ACTIONS, checks)
            read_well += 1
    assert read_well < 100


def test_a_list_may_not_stand_for_ever_so_many_steps() -> None:
    many = {"list.json": [Identity("", "ConfigMap", "shop", f"x-{number}") for number in range(MAX_STEPS + 1)]}
    step = {"object": "list.json", "action": "CreateOrUpdate"}
    with pytest.raises(ManifestInvalid, match=r"spec\.groups: stand for more than 1,000 steps, one for each item of a List"):
        read(Manifest.of(yaml.safe_load(SEED) | {"spec": groups(step)}, PLACE), many, ACTIONS, CHECKS)


def test_the_number_of_compared_fields_has_a_limit() -> None:
    """A step of a List compares for each of its items; a check without a list counts as one."""
    compare = {"fieldComparisons": {"expectedValues": [{"path": "{.metadata.name}", "value": {"static": "x"}}] * 49}}
    bare = {"object": "list.json", "action": "CreateOrUpdate"}
    step = {**bare, "success": [compare, {"healthy": {}}]}
    keys = {"list.json": [Identity("", "ConfigMap", "shop", f"x-{number}") for number in range(50)]}

    def reading(*steps: Mapping[str, Any]) -> Rollout:
        return read(Manifest.of(yaml.safe_load(SEED) | {"spec": groups(*steps)}, PLACE), keys, ACTIONS, LITERAL)

    assert len(reading(step, step).steps) == 100
    with pytest.raises(ManifestInvalid) as refused:
        reading(step, step, {**bare, "failure": [{"healthy": {}}]}, *[step] * 900)
    [problem] = refused.value.problems
    assert problem.subject == "spec.groups[0].steps[2].failure"
    assert "more than 5,000 values" in problem.message
