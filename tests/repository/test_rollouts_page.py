"""docs/rollouts.md says only what is so: every block of YAML in it is read by the code it is about, and its tables name what there is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from handler.config import cel
from handler.config.load import load
from handler.config.settings import Target, Wait
from handler.config.settings_shape import slots
from handler.config.value_formats import duration
from handler.engine.apply import wait_deleted
from handler.engine.health.custom_health import KILLED, LIMITS
from handler.engine.rollout_runner.actions import ACTIONS
from handler.health.kinds.custom import READY
from handler.health.kstatus import ALWAYS_HEALTHY, KINDS
from handler.model.manifest import Manifest
from handler.model.names import GroupKind, Identity, identity_of
from handler.model.rollout import MAX_STEPS, Rollout, Step
from handler.plan.order import DEPENDS_ON, SYNC_WAVE
from handler.rollout import hook_annotations, spec
from handler.rollout.canary import DEFAULT, FAILURE_LIMIT, weights
from handler.rollout.checks import CHECKS
from handler.rollout.checks.prometheus import INTERVAL
from handler.rollout.spec_fields import PROGRESS, TIMEOUT
from infra.house.pages import blocks, spans
from infra.house.sources import ROOT

PAGE = ROOT / "docs" / "rollouts.md"
TEXT = PAGE.read_text()
BLOCKS = [yaml.safe_load(text) for text in blocks(PAGE, "yaml")]
KINDS_OF_KEYS = {"deployment": ("apps", "Deployment"), "job": ("batch", "Job"), "secret": ("", "Secret")}
TARGET_KEYS = {slot.key for slot in slots(Target)}


EMPTY = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "one"}}


def object_of(key: str) -> Identity:
    """Return what a file of this name would hold."""
    group, kind = next(found for word, found in KINDS_OF_KEYS.items() if word in key)
    return Identity(group, kind, "shop", key)


def rollout_of(document: dict[str, Any]) -> Rollout:
    """Read a Rollout, or steps of one."""
    whole: dict[str, Any] = document if "kind" in document else {**EMPTY, "spec": {"groups": [{"steps": document["steps"]}]}}
    keys = [step["object"] for group in whole["spec"]["groups"] for step in group["steps"]]
    return spec.read(Manifest.of(whole, "docs/rollouts.md:1"), {key: (object_of(key),) for key in keys}, ACTIONS, CHECKS)


STEPS = [document for document in BLOCKS if "steps" in document or document.get("kind") == "Rollout"]
CONFIGS = [document for document in BLOCKS if document.get("kind") == "Config"]
PARTS = [document for document in BLOCKS if document.keys() <= TARGET_KEYS]
OBJECTS = [document for document in BLOCKS if document.get("kind") not in (None, "Config", "Rollout")]


def test_every_configuration_is_read(tmp_path: Path) -> None:
    target = {"name": "shop", "repository": {"url": "https://git.example.com/a/b.git"}, "namespaces": ["shop"]}
    head = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config"}
    for document in (*CONFIGS, *({**head, "targets": [target | part]} for part in PARTS)):
        (tmp_path / "anneal.yaml").write_text(json.dumps(document))
        assert load(tmp_path / "anneal.yaml").targets, document


def test_every_object_is_a_hook_or_stands_in_a_wave() -> None:
    for document in OBJECTS:
        read = hook_annotations.read(document, identity_of(document), "docs/rollouts.md:1")
        assert read.problems == ()
        assert read.hook or document["metadata"]["annotations"].keys() >= {SYNC_WAVE, DEPENDS_ON}, document


def test_every_block_is_of_a_known_sort_and_each_action_check_and_dialect_has_an_example() -> None:
    assert len(STEPS) + len(CONFIGS) + len(PARTS) + len(OBJECTS) == len(BLOCKS)
    assert all((STEPS, CONFIGS, PARTS, OBJECTS))
    read = [step for document in STEPS for step in rollout_of(document).steps]
    assert {step.action for step in read} == set(ACTIONS)
    assert {check.type for step in read for check in (*step.success, *step.failure)} == set(CHECKS)
    assert {spec.is_old({"groups": [{"steps": document["steps"]}]}) for document in STEPS if "steps" in document} == {True, False}
    assert {group.parallel for document in STEPS for group in rollout_of(document).groups} == {True, False}


# --- how long the examples take
WAIT = Wait()


def best(step: Step) -> float:
    """Return the seconds that a step takes where everything is as asked at the first look."""
    held = [max(hold, *_lasting(step)) for _, hold in weights(step.options)] if step.action == "Canary" else []
    return sum(held) if held else max(_lasting(step))


def worst(step: Step) -> float:
    """Return the seconds until the last of a step's time limits has failed it."""
    limit = max((float(check.options["timeout"]) for check in step.success), default=0.0)
    if step.action == "Canary":
        return sum(WAIT.timeout + max(hold + WAIT.timeout, limit) for _, hold in weights(step.options)) + WAIT.timeout
    return limit or WAIT.timeout


def bad_all_along(step: Step) -> float:
    """Return the seconds after which a metric that is bad from the first sample on has failed; 0: it never does."""
    limited = [check.options for check in step.success if check.options.get("failureLimit")]
    return min(((each["failureLimit"] - 1) * each["interval"] for each in limited), default=0.0)


def _lasting(step: Step) -> list[float]:
    return [0.0, *(float(check.options.get("for", 0.0)) for check in step.success)]


def of_groups(rollout: Rollout, seconds: Callable[[Step], float]) -> float:
    """Return how long all groups take, one after the other."""
    return sum((max if group.parallel else sum)(map(seconds, group.steps)) for group in rollout.groups)


def told(seconds: float) -> str:
    return duration(seconds) if seconds else "at once"


def says(rollout: Rollout) -> str:
    """Return how the line below an example begins."""
    (kinds,) = {frozenset(step.action for step in rollout.steps)}
    least, most, a_run = told(of_groups(rollout, best)), told(of_groups(rollout, worst)), duration(wait_deleted.TIMEOUT)
    if kinds == {"DeleteIfExist"}:
        return f"At best {least}, at worst as long as a finalizer holds the object: a run waits {a_run}, says which, "
    if kinds == {"Recreate"}:
        return f"At best {least}, at worst {most} once the old object is gone; a run waits {a_run} for that, "
    bad = of_groups(rollout, bad_all_along)
    more = f"; where the metric is bad all along, it has failed {duration(bad)} after the first share stands" if bad else "."
    return f"At best {least}, at worst {most}{more}"


BELOW = re.findall(r"^```yaml\n.*?^```\n+(?=([^\n]*)\n)", TEXT, re.DOTALL | re.MULTILINE)
"""The line below each block."""


def test_each_example_says_how_long_it_takes() -> None:
    for document, below in zip(BLOCKS, BELOW, strict=True):
        assert document not in STEPS or below.startswith(says(rollout_of(document))), below


def test_a_canary_under_a_bad_metric_goes_within_a_minute() -> None:
    """By its settings alone: what its pods take to end is theirs."""
    (step,) = [step for document in STEPS for step in rollout_of(document).steps if step.action == "Canary" and step.success]
    (options,) = [check.options for check in step.success]
    assert (options["failureLimit"], options["interval"]) == (FAILURE_LIMIT, INTERVAL)
    assert options["failureLimit"] * options["interval"] < 60


def test_the_table_of_health_names_every_kind_that_has_a_rule() -> None:
    section = TEXT.partition("\n## Health\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"[A-Z][A-Za-z]+", " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| "))))
    assert {kind.kind for kind in KINDS} <= named
    assert {"ConfigMap", "Secret", "CronJob", "Lease"} <= {kind.kind for kind in ALWAYS_HEALTHY} & named


def test_the_table_of_custom_resources_is_that_of_the_code() -> None:
    section = TEXT.partition("\n### Health of custom resources\n")[2].partition("\n### ")[0]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    told = [GroupKind(group.strip(" `"), kind.strip()) for group, kinds, _ in rows for kind in kinds.split(",")]
    assert sorted(told) == sorted(READY)
    assert all(source.startswith("https://") for _, source in READY.values())


def test_the_budgets_of_expressions_are_those_of_the_code() -> None:
    assert f"{cel.STEPS:,} steps" in TEXT
    assert (LIMITS.cpu, LIMITS.memory, KILLED) == (1, 1 << 30, 5)
    assert "one object a second of processor time and 1 GiB, a target as much as five children" in TEXT


def test_the_tables_of_hooks_name_every_word() -> None:
    section = TEXT.partition("\n## Hooks\n")[2].partition("\n## ")[0]
    assert {
        *hook_annotations._ARGO_PHASES,
        *hook_annotations._ARGO_POLICIES,
        *hook_annotations._HELM_POLICIES,
        hook_annotations._CRD_INSTALL,
    } <= set(spans(section))
    assert {"pre-install", "pre-upgrade", "post-install", "post-upgrade", "test", "pre-delete", "pre-rollback"} <= set(spans(section))


def test_the_defaults_are_those_of_the_code() -> None:
    assert (TIMEOUT, PROGRESS) == (3600.0, 300.0)
    assert "`timeout` (1h), `progressTimeout` (5m" in TEXT
    assert list(weights(DEFAULT)) == [(10, 120.0), (50, 300.0)]
    assert "default 10 % for 2m, then 50 % for 5m" in TEXT
    assert f"at most {MAX_STEPS:,} steps" in TEXT
    assert f"| {FAILURE_LIMIT} in a `Canary`, else none |" in TEXT
    assert f"| {duration(INTERVAL)} |" in TEXT
