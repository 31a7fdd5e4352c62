"""Every row of the table of checks: its sample is read, its options are what JSON can say, its object passes and another doesn't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.errors import ManifestInvalid, RolloutFailed
from handler.model.manifest import Manifest
from handler.rollout.checks import CHECKS
from handler.rollout.interfaces import Verdict
from handler.rollout.spec import read
from tests.unit.rollout.checks.scenes import SINCE, Metrics, begun, identity, mistakes, moment
from tests.unit.rows import each_row

SAMPLES: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "checks" / "samples.yaml").read_text())


def test_each_check_has_a_sample() -> None:
    assert set(SAMPLES) == set(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_a_sample_is_read_into_what_json_can_say(name: str) -> None:
    options = CHECKS[name].read(SAMPLES[name]["written"], "check")
    assert json.loads(json.dumps(options)) == options


@pytest.mark.parametrize("name", CHECKS)
def test_a_sample_passes_and_another_object_waits(name: str) -> None:
    sample = SAMPLES[name]
    values = sample.get("samples", {"passes": 0.0, "waits": 0.0})
    found = {}
    for case in ("passes", "waits"):
        metrics = Metrics([moment(values[case])])
        pods = lambda case=case: sample.get("pods", []) if case == "passes" else []  # noqa: E731 - a closure of one case
        probe = begun(name, sample["written"], identity(**sample["kind"]), query=metrics, pods=pods)
        found[case] = probe.look(sample[case], SINCE)
    assert found["passes"].verdict is Verdict.PASSED, found["passes"].message
    assert found["waits"].verdict is Verdict.PENDING
    assert sample["says"] in found["waits"].message


@each_row("name", CHECKS)
@each_row("raw", [7, "text", True, [7], ["x"], {"nonsense": 1}, {"timeout": "never"}, {"timeout": 1e99}, {"timeout": -1}])
def test_another_shape_is_refused_with_its_place(name: str, raw: Any) -> None:
    found = mistakes(name, raw)
    assert found
    assert all(place.startswith("check") for place in found)


@pytest.mark.parametrize("name", CHECKS)
def test_a_step_that_deletes_its_object_may_only_check_what_is_not_about_it(name: str) -> None:
    one = {"object": "web.yaml", "action": "DeleteIfExist", "success": [{name: SAMPLES[name]["written"]}]}
    head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "shop"}}
    document = Manifest.of({**head, "spec": {"groups": [{"steps": [one]}]}}, "rollout.yaml:1")
    keys = {"web.yaml": (identity(**SAMPLES[name]["kind"]),)}
    if name == "prometheus":
        assert read(document, keys, ACTIONS, CHECKS).steps[0].success
        return
    with pytest.raises(
        ManifestInvalid, match=rf"steps\[0\].action: DeleteIfExist leaves no object that {name} could look at; there prometheus"
    ):
        read(document, keys, ACTIONS, CHECKS)


@pytest.mark.parametrize("name", ["jobComplete", "JobOOMKilled"])
def test_a_check_about_jobs_refuses_another_object(name: str) -> None:
    with pytest.raises(RolloutFailed, match=f"Deployment/shop/web: is no Job, and {name} is about Jobs"):
        begun(name, {})
