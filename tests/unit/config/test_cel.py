"""`healthCheckExprs` as they are written: what is taken as Flux takes it, and what is refused where it stands."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from handler.config import cel
from handler.config.load import parse
from handler.model.errors import ConfigInvalid
from tests.unit.config.config_mistakes import TARGET, mistakes
from tests.unit.rows import each_row

PASTED = """    healthCheckExprs:
      - apiVersion: ceph.rook.io/v1
        kind: CephCluster
        failed: status.ceph.health == 'HEALTH_ERR'
        current: status.ceph.health == 'HEALTH_OK'
      - apiVersion: cluster.x-k8s.io/v1beta1
        kind: Cluster
        failed: status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'False')
        current: status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')
      - apiVersion: iam.aws.crossplane.io/v1beta1
        kind: Role
        failed: status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'False' && e.reason == 'ReconcileError')
        current: status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')
      - apiVersion: fluxcd.controlplane.io/v1
        failed: status.conditions.exists(e, e.type == 'Stalled' && e.status == 'True' && e.observedGeneration == metadata.generation)
        current: >-
          status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True' && e.observedGeneration == metadata.generation)
"""
"""Of Flux' cheatsheet."""


def test_health_check_exprs_pasted_from_flux_are_taken() -> None:
    entries = parse(TARGET + PASTED, "a.yaml").targets[0].health_check_exprs
    assert [str(entry) for entry in entries] == [
        "CephCluster.ceph.rook.io",
        "Cluster.cluster.x-k8s.io",
        "Role.iam.aws.crossplane.io",
        "any kind of fluxcd.controlplane.io",
    ]
    assert entries[0].in_progress == ""


@each_row(
    "expression",
    [
        "status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')",
        "has(status.phase) && status.phase in ['A', 'B']",
        "status.conditions[?0].?status.orValue('') == 'True'",
        "status.replicas == 1.0 || [1, 'a'].size() == 2",
        "sets.contains(status.a, ['x']) && base64.decode(status.b) == b'y'",
        "data['tls.crt'].startsWith('-----BEGIN') && metadata.name.lowerAscii().split('-').size() > 1",
        "timestamp(status.since) + duration('1h') < timestamp('2030-01-01T00:00:00Z')",
        "type(status.x) == string && size(status.x) > 0",
        "int(status.observedGeneration) == metadata.generation",
        "status.`a-b` == 1",
    ],
)
def test_an_expression_that_flux_takes_is_taken(expression: str) -> None:
    assert cel.complaint(expression) == ""


@each_row(
    ("expression", "said"),
    [
        (
            "status.phase ==",
            "1:16: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', ",
        ),
        ("status.phase = 'Ready'", "1:14: Syntax error: token recognition error at: '= '"),
        ("status.\nphase.startswith('R')", "2:17: there is no function 'startswith'"),
        ("status.conditions.exist(e, e.type == 'Ready')", "1:24: there is no function 'exist'"),
        ("status.conditions.all(i, e, e.type == 'Ready')", "1:22: there is no function 'all'"),
        ("if", "1:1: reserved identifier: if"),
        ("(" * 100 + "true" + ")" * 100, "CANCELLED: Expression recursion limit exceeded. limit: 32 [CANCELLED]"),
    ],
)
def test_an_expression_that_cel_refuses_is_refused_in_its_words(expression: str, said: str) -> None:
    assert cel.complaint(expression).startswith(said)


def entry(text: str) -> str:
    return f"{TARGET}    healthCheckExprs:\n      - {{{text}}}\n"


@each_row(
    ("text", "said"),
    [
        (
            "apiVersion: example.com/v1, kind: Offer, current: status.a.exist(x)",
            (
                "a.yaml:8: targets[shop].healthCheckExprs[0].current: CEL can't read it: 1:15: there is no function 'exist'; "
                "write a CEL expression over the object's own fields: current: status.phase == 'Ready'"
            ),
        ),
        (
            "apiVersion: example.com/v1, kind: Offer",
            "a.yaml:8: targets[shop].healthCheckExprs[0].current: is required and missing; add `current: status.phase == 'Ready'`",
        ),
        (
            "apiVersion: example.com/v1, kind: offers, current: 'true'",
            'a.yaml:8: targets[shop].healthCheckExprs[0].kind: expected a kind, found "offers"',
        ),
        (
            "apiVersion: a/b/c, current: 'true'",
            'a.yaml:8: targets[shop].healthCheckExprs[0].apiVersion: expected an apiVersion, found "a/b/c"',
        ),
        (
            "apiVersion: example.com/v1, current: true",
            (
                "a.yaml:8: targets[shop].healthCheckExprs[0].current: expected an expression in CEL, found true, which YAML reads as "
                'true or false; write "true"'
            ),
        ),
        (
            "apiVersion: example.com/v1, current: 'true', failing: 'false'",
            "a.yaml:8: targets[shop].healthCheckExprs[0].failing: unknown key; did you mean `failed`?",
        ),
    ],
)
def test_a_mistake_in_health_check_exprs_has_its_place_and_fix(text: str, said: str) -> None:
    assert mistakes(entry(text)) == [said]


def test_a_second_entry_for_a_kind_is_refused_of_whatever_version() -> None:
    twice = (
        entry("apiVersion: example.com/v1, kind: Offer, current: 'true'")
        + "      - {apiVersion: example.com/v2, kind: Offer, current: 'true'}\n"
    )
    [said] = mistakes(twice)
    assert "targets[shop].healthCheckExprs: entry 1 is a second one for Offer.example.com; leave one" in said


def test_health_check_exprs_of_the_installation_are_read_as_strictly() -> None:
    text = TARGET + "healthCheckExprs: [{apiVersion: v1, kind: Secret, current: 'data.'}]\n"
    [said] = mistakes(text)
    assert said.startswith("a.yaml:7: healthCheckExprs[0].current: CEL can't read it: 1:")


def test_a_health_check_expr_mistake_in_the_defaults_is_told_once() -> None:
    text = TARGET + "defaults: {healthCheckExprs: [{apiVersion: v1, current: 'a.b('}]}\n"
    assert len(mistakes(text)) == 1


def test_without_the_cel_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    cel.environment.cache_clear()
    cel.complaint.cache_clear()
    try:
        with pytest.raises(ConfigInvalid, match=r"healthCheckExprs: needs the library cel_expr_python.*pip install cel-expr-python"):
            parse(entry("apiVersion: example.com/v1, current: status.a"))
        assert parse(TARGET).targets
    finally:
        cel.environment.cache_clear()


OBJECT: dict[str, Any] = {"metadata": {"generation": 3}, "status": {"n": 3, "x": 1.0, "list": [1, 2, 3], "text": "é"}}


@each_row(
    "expression",
    [
        "status.list.exists_one(x, x == 2) && status.list.map(x, x * 2) == [2, 4, 6] && status.list.filter(x, x > 1).size() == 2",
        "status.x == 1 && status.n == 3.0 && status.n == 3u && status.n > 2.5",
        "!has(status.y) && has(status.n) && status.?y.z.orValue('none') == 'none'",
        "status.text.size() == 1 && status.text.matches('^.$')",
        "false && status.y || true",
        "metadata.generation == status.n",
        "string(status.n) == '3' && int('3') == status.n && double(status.n) == 3.0",
        "timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026 && duration('90m') > duration('1h')",
    ],
)
def test_an_object_of_json_is_seen_as_flux_sees_it(expression: str) -> None:
    assert cel.compiled(expression).eval(data=OBJECT).value() is True


@each_row(("rows", "enough"), [(90, True), (105, False)])
def test_an_evaluation_is_bounded_by_its_steps(rows: int, *, enough: bool) -> None:
    """The bound that messages name is the library's own: it stops at 10,000, however fast the machine."""
    nested = cel.compiled("list.exists(a, list.exists(b, a + b < 0))")
    if enough:
        assert nested.eval(data={"list": list(range(rows))}).value() is False
    else:
        with pytest.raises(RuntimeError, match=cel.SPENT):
            nested.eval(data={"list": list(range(rows))})
    assert 90 * 91 < cel.STEPS < 105 * 106
