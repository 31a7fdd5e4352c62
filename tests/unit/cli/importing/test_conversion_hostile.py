"""Whatever an object holds: no traceback, a configuration that loads or a refusal, and each leaf named."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handler.cli.importing.conversion import KINDS
from handler.cli.importing.custom_resource import leaves
from handler.cli.importing.output import document, facts
from tests.unit.cli.importing.custom_resources import ARGOCD, app, chart, converted, git, ks, made, notes, read, release, repo, unsaid
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

WHOLE = [
    git(secretRef={"name": "login"}, verify={"mode": "HEAD"}, ignore="*.md"),
    repo(secretRef={"name": "login"}, type="default", provider="generic"),
    ks(wait=True, timeout="2m", targetNamespace="web", healthCheckExprs=[{"apiVersion": "a.b/v1", "kind": "C", "current": "true"}]),
    release(
        releaseName="web",
        values={"a": {"b": [1, 2.5, None, "on"]}},
        valuesFrom=[{"kind": "Secret", "name": "web", "valuesKey": "v.yaml", "targetPath": "a.b", "optional": True}],
        driftDetection={"mode": "warn", "ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deployment", "name": "web.*"}}]},
        upgrade={"remediation": {"retries": 2, "strategy": "rollback"}, "crds": "CreateReplace"},
        kubeConfig={"secretRef": {"name": "prod", "key": "value"}},
    ),
    app(
        {"helm": {"valueFiles": ["a.yaml", "/b.yaml"], "parameters": [{"name": "a", "value": "1"}], "valuesObject": {"a": 1}}},
        ignoreDifferences=[{"group": "apps", "kind": "Deployment", "jqPathExpressions": [".spec.replicas"], "jsonPointers": ["/a"]}],
        syncPolicy={"automated": {"prune": True}, "syncOptions": ["Prune=confirm", "Odd=true"], "retry": {"limit": 2}},
    ),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**14), 10**14)
    | st.integers(-(10**6), 10**6).map(lambda whole: whole / 1000)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
PLACES = [(index, path) for index, each in enumerate(WHOLE) for path, _ in leaves(each)]


def judge(*documents: Any) -> None:
    found = converted(*documents)
    facts(found, {})
    assert unsaid(found) == []
    if found.targets:
        assert len(read(found).targets) == len(found.targets)
    else:
        document(found, {"ConfigMap": 1})


def replaced(index: int, path: tuple[Any, ...], value: Any) -> list[Any]:
    """All of it, with one value in place of another, or of what is above it."""
    documents = copy.deepcopy(WHOLE)
    inner: Any = documents[index]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return documents


def test_what_is_whole_becomes_three_targets() -> None:
    judge(*WHOLE)
    assert [each["name"] for each, _ in converted(*WHOLE).targets] == ["apps", "flux-system-web", "argocd-web"]


@FEW
@given(place=st.sampled_from(PLACES), up=st.integers(0, 4), value=ANYTHING)
def test_any_value_may_stand_in_any_place(place: tuple[int, tuple[Any, ...]], up: int, value: Any) -> None:
    index, path = place
    judge(*replaced(index, path[: max(1, len(path) - up)], value))


@FEW
@given(rows=st.lists(st.tuples(st.sampled_from(sorted(KINDS)), ANYTHING, ANYTHING), max_size=4))
def test_any_object_of_a_known_kind_may_hold_anything(rows: list[Any]) -> None:
    judge(*({"apiVersion": f"{kind.group}/v1", "kind": kind.kind, "metadata": meta, "spec": spec} for kind, meta, spec in rows))


@FEW
@given(names=st.lists(st.tuples(st.text(max_size=70), st.text(max_size=20)), min_size=1, max_size=4))
def test_any_name_becomes_one_of_a_target(names: list[tuple[str, str]]) -> None:
    judge(git(), *(made("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, ks()["spec"], space) for name, space in names))


@FEW
@given(values=st.dictionaries(st.text(max_size=30), st.text() | VALUES, max_size=4))
def test_values_are_read_as_they_were_written(values: dict[str, Any]) -> None:
    found = converted(git(), repo(), release(values=values))
    assert unsaid(found) == []
    renderer = read(found).targets[0].renderer
    assert json.loads(renderer.values or "{}") == json.loads(json.dumps(values))


@each_row(
    ("documents", "said"),
    [
        ([git(), {**ks(), "metadata": None}], "has no metadata.name"),
        ([git(), {**ks(), "metadata": {"name": 5}}], "has no metadata.name"),
        ([git(), {**ks(), "spec": [1]}], "refers to GitRepository/flux-system, which isn't in the input"),
        ([git(url=["x"]), ks()], "takes from GitRepository/flux-system/shop, which has a URL that no target can follow"),
        ([git(), ks(path="a\\b")], "has a path that can't be written in a configuration"),
        ([git(), ks(), ks(prune=False)], "is in the input twice, first at in.yaml:2, which counts"),
        ([git(), repo(), release(chart=chart(chart="../../x"))], "names no chart"),
        ([made(ARGOCD, "Application", "web", {"project": "default"}, "argocd")], "has no source"),
    ],
)
def test_what_no_target_can_stand_for_is_named(documents: list[Any], said: str) -> None:
    assert any(said in note.text for each in converted(*documents).resources for note in each.notes)


def test_names_that_are_none_of_a_target_are_made_ones_and_told_apart() -> None:
    long = "a" * 80
    spaced = [{**ks("apps"), "metadata": {"name": "apps", "namespace": each}} for each in ("one", "two")]
    spec = {**ks()["spec"], "sourceRef": {"kind": "GitRepository", "name": "shop", "namespace": "flux-system"}}
    documents = [{**each, "spec": spec} for each in [*spaced, ks("Web.Shop_1"), ks("web-shop-1"), ks(long), ks("...")]]
    assert [each["name"] for each, _ in converted(git(), *documents).targets] == [
        "one-apps",
        "two-apps",
        "flux-system-web-shop-1",
        "flux-system-web-shop-1-2",
        "a" * 56,
        "imported",
    ]


def test_values_deeper_or_larger_than_a_configuration_may_be_suspend_the_target() -> None:
    deep: Any = {}
    for _ in range(190):
        deep = {"a": deep}
    for values, how in (
        (deep, "deeper"),
        ({"a": list(range(30_000))}, "larger"),
        ({"a": 10**16}, "more digits"),
        ({"a": 1e300}, "more digits"),
    ):
        found = converted(git(), repo(), release(values=values))
        assert how in notes(found)["spec.values"].text
        assert read(found).targets[0].suspend


def test_a_comment_is_one_line_whatever_a_name_holds() -> None:
    found = converted(git(), {**ks(), "metadata": {"name": "a\nb: c\x1b[31m\u2028", "namespace": "x"}, "spec": {"x\ny": 1}})
    text = document(found, {"A\nB": 2})
    assert all(line.startswith("#") or ":" in line for line in text.splitlines())
    assert "\x1b" not in text
