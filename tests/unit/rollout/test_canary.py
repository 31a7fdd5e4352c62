"""A canary's steps, its manifest, when one is needed, and what is remembered of it."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.errors import ManifestInvalid
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, Identity
from handler.model.rollout import API_VERSION, Rollout
from handler.rollout import canary, spec
from handler.rollout.canary import LABEL, CanaryMark, CanaryPhase, identity_of_canary
from handler.rollout.checks import CHECKS
from handler.rollout.interfaces import SpecError
from handler.state.record_format import seconds_of

pytestmark = pytest.mark.slow

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["steps", "weight", "for", "x"]), inner, max_size=3),
    max_leaves=8,
)
NOON = "2026-01-31T12:00:00.000Z"
API = Identity("apps", "Deployment", "shop", "api")


def deployment(name: str = "api", **spec: Any) -> Manifest:
    metadata = {
        "name": name,
        "namespace": "shop",
        "labels": {PART_OF: "applyset-x-v1", "team": "web", "kustomize.toolkit.fluxcd.io/prune": "disabled"},
        "annotations": {IDENTITY: f"shop:apps/Deployment:shop/{name}", "helm.sh/resource-policy": "keep"},
    }
    pod = {
        "metadata": {"labels": {"app": "api", "v": "2"}, "annotations": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "c:2"}]},
    }
    whole = {"replicas": 5, "selector": {"matchLabels": {"app": "api"}}, "minReadySeconds": 3, "template": pod, **spec}
    return Manifest.of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": whole}, "api.yaml:1")


def mistakes(raw: Any) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as caught:
        canary.read(raw, "spec.groups[0].steps[1]")
    return [(each.field.removeprefix("spec.groups[0].steps[1]").lstrip("."), each.message) for each in caught.value.mistakes]


# --- steps
def test_canary_steps_are_read_and_printed() -> None:
    options = canary.read({"steps": [{"weight": 10, "for": "2m"}, {"weight": 50, "for": 600}]}, "x")
    assert options == {"steps": [{"weight": 10, "for": 120.0}, {"weight": 50, "for": 600.0}]}
    assert canary.weights(options) == [(10, 120.0), (50, 600.0)]
    assert canary.steps_text(options) == "10 % for 2m, 50 % for 10m"


def test_a_canary_without_steps_has_default_steps() -> None:
    assert canary.read({}, "x") == canary.read({"steps": None}, "x") == canary.DEFAULT
    assert canary.read(canary.DEFAULT, "x") == canary.DEFAULT


def test_every_mistake_is_told_at_once() -> None:
    raw = {"steps": [{"weight": 0, "for": "2m"}, {"weight": 1.5, "for": "soon"}, "ten", {"weight": 101, "wait": "1m"}, {}], "step": 1}
    assert mistakes(raw) == [
        ("step", "unknown key 'step'"),
        ("steps[0].weight", "is 0; expected 1 to 100"),
        ("steps[1].weight", "is a number, not a whole number"),
        ("steps[1].for", "expected a duration such as 30s, 5m or 1h30m"),
        ("steps[2]", "is text, not a mapping"),
        ("steps[3].wait", "unknown key 'wait'"),
        ("steps[3].for", "is missing"),
        ("steps[3].weight", "is 101; expected 1 to 100"),
        ("steps[4].weight", "is missing"),
        ("steps[4].for", "is missing"),
    ]


def test_a_canary_needs_a_step_and_rising_weights() -> None:
    assert mistakes({"steps": []}) == [("steps", "has no step")]
    assert mistakes({"steps": {}}) == [("steps", "is a mapping, not a list")]
    same = [{"weight": 10, "for": "1s"}, {"weight": 10, "for": "1s"}, {"weight": 5, "for": "1s"}]
    assert mistakes({"steps": same})[0] == ("steps[1].weight", "is 10, after 10")


@given(ANYTHING)
def test_any_canary_options_are_read_or_refused(raw: Any) -> None:
    for given_ in (raw, {"steps": raw}, {"steps": [raw]}):
        with contextlib.suppress(SpecError):
            read = canary.weights(canary.read(given_, "x"))
            assert read == sorted(set(read))
            assert all(1 <= weight <= 100 and seconds >= 0 for weight, seconds in read)


# --- its manifest
def test_a_canary_has_the_new_pods_and_a_label_of_its_own() -> None:
    made = canary.manifest(deployment(), deployment().body(), "shop", 2, without={"kustomize.toolkit.fluxcd.io/prune"})
    body = made.body()
    assert made.identity == identity_of_canary(API) == Identity("apps", "Deployment", "shop", "api-canary")
    assert body["metadata"] == {
        "name": "api-canary",
        "namespace": "shop",
        "labels": {PART_OF: "applyset-x-v1", "team": "web", LABEL: "api"},
        "annotations": {IDENTITY: "shop:apps/Deployment:shop/api-canary"},
    }
    spec, declared = body["spec"], deployment().body()["spec"]
    assert (spec["replicas"], spec["selector"], spec["minReadySeconds"]) == (2, {"matchLabels": {LABEL: "api"}}, 3)
    assert spec["template"]["metadata"] == {"labels": {"app": "api", "v": "2", LABEL: "api"}, "annotations": {"a": "b"}}
    assert spec["template"]["spec"] == declared["template"]["spec"]
    assert made.place == "api.yaml:1"


@pytest.mark.parametrize("template", [None, {"metadata": None}, {"metadata": {"labels": []}}, {"metadata": {"creationTimestamp": None}}])
def test_a_template_of_any_shape_gives_a_canary_that_the_server_may_refuse(template: Any) -> None:
    body = canary.manifest(deployment(), deployment(template=template).body(), "shop", 1).body()
    assert body["spec"]["template"]["metadata"] == {"labels": {LABEL: "api"}}


@pytest.mark.parametrize("length", [1, 55, 56, 57, 63, 64, 100, 235, 242, 253])
def test_names_and_labels_stay_within_kubernetes_limits(length: int) -> None:
    for fill in ("a", "a."):
        name = (fill * length)[: length - 1] + "z"
        body = canary.manifest(deployment(name), deployment(name).body(), "shop", 1).body()
        made, value = body["metadata"]["name"], body["metadata"]["labels"][LABEL]
        assert len(made) <= (63 if length <= 63 else 242)
        assert made.endswith("-canary")
        assert made != name
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", made)
        assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value)


def test_two_long_deployment_names_have_two_canary_names() -> None:
    first, second = (Identity("apps", "Deployment", "shop", "a" * 240 + end) for end in ("x", "y"))
    assert identity_of_canary(first) != identity_of_canary(second)


@pytest.mark.parametrize(
    ("stable", "weight", "share"), [(10, 10, 1), (10, 11, 2), (3, 10, 1), (3, 50, 2), (4, 100, 4), (0, 50, 1), (1000, 7, 70)]
)
def test_a_canarys_replicas_are_rounded_up_and_never_zero(stable: int, weight: int, share: int) -> None:
    assert canary.replicas(stable, weight) == share


# --- when
def test_only_other_pods_of_a_deployment_that_runs_go_by_canary() -> None:
    old = {"spec": {"replicas": 2, "template": {"spec": {"containers": [{"image": "c:1"}]}}}}
    new = {"spec": {"replicas": 3, "template": {"spec": {"containers": [{"image": "c:2"}]}}}}
    assert canary.is_needed(old, new)
    assert canary.is_needed({"spec": {"template": {}}}, new)
    assert not canary.is_needed(None, new)
    assert not canary.is_needed({"spec": {**old["spec"], "replicas": 0}}, new)
    assert not canary.is_needed({"spec": {**old["spec"], "replicas": 7}}, old)


# --- what is remembered
@pytest.mark.parametrize(
    ("mark", "text"),
    [
        (CanaryMark(CanaryPhase.SCALE, 1, NOON), f"scale 1 {NOON}"),
        (CanaryMark(CanaryPhase.HOLD, 0, NOON), f"hold 0 {NOON}"),
        (CanaryMark(CanaryPhase.REMOVE, 1, NOON, "errors: 0.5 is not < 0.01"), f"remove 1 {NOON} errors: 0.5 is not < 0.01"),
    ],
)
def test_a_mark_is_read_as_it_was_written(mark: CanaryMark, text: str) -> None:
    assert mark.text() == text
    assert CanaryMark.of(text) == mark


@given(st.text() | st.from_regex(r"(hold|remove) [0-9]{1,4} [0-9TZ:.-]{0,30}.*"))
def test_a_malformed_canary_mark_is_ignored(text: str) -> None:
    found = CanaryMark.of(text)
    assert found is None or seconds_of(found.since) > 0


@pytest.mark.parametrize(
    "text", ["", "hold", "hold 0", "hold 0 -", "hold 0 2026-13-31T12:00:00.000Z", f"wait 0 {NOON}", f"hold x {NOON}", f"hold 1000 {NOON}"]
)
def test_a_mark_that_no_canary_has_written_is_none(text: str) -> None:
    assert CanaryMark.of(text) is None


def test_a_moment_is_written_to_the_millisecond() -> None:
    assert canary.moment(seconds_of(NOON) + 0.25) == "2026-01-31T12:00:00.250Z"


# --- in a Rollout
SAMPLE = {
    "name": "api",
    "object": "deployment",
    "action": "Canary",
    "steps": [{"weight": 10, "for": "2m"}, {"weight": 50, "for": "10m"}],
    "success": [{"prometheus": {"query": 'error_rate{track="canary"}', "is": "< 0.01", "for": "2m"}}],
    "failure": [{"prometheus": {"query": 'error_rate{track="canary"}', "is": "> 0.05"}}],
}


def rollout(step: dict[str, Any]) -> Rollout:
    body = {"apiVersion": API_VERSION, "kind": "Rollout", "metadata": {"name": "api"}, "spec": {"groups": [{"steps": [step]}]}}
    return spec.read(Manifest.of(body, "rollout.yaml:1"), {"deployment": (API,)}, ACTIONS, CHECKS)


def test_a_step_of_a_rollout() -> None:
    [step] = rollout(SAMPLE).steps
    assert (step.action, step.identity, canary.steps_text(step.options)) == ("Canary", API, "10 % for 2m, 50 % for 10m")
    assert [check.type for check in (*step.success, *step.failure)] == ["prometheus", "prometheus"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"steps": [{"weight": 500, "for": "1m"}]}, "spec.groups[0].steps[0].steps[0].weight: is 500; expected 1 to 100"),
        ({"action": "CreateOrUpdate"}, "spec.groups[0].steps[0].steps: unknown key 'steps'"),
    ],
)
def test_mistakes_of_its_steps_have_their_path_in_the_rollout(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        rollout(SAMPLE | change)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("mark", "share"),
    [
        (CanaryMark(CanaryPhase.SCALE, 0, NOON), 10),
        (CanaryMark(CanaryPhase.HOLD, 1, NOON), 50),
        (CanaryMark(CanaryPhase.PROMOTE, 1, NOON), 100),
        (CanaryMark(CanaryPhase.REMOVE, 1, NOON), 100),
        (CanaryMark(CanaryPhase.REMOVE, 0, NOON, "errors: 0.5"), 0),
    ],
)
def test_a_share_is_the_canarys_until_all_pods_are_new_or_it_was_refused(mark: CanaryMark, share: int) -> None:
    assert mark.share(canary.DEFAULT) == share
