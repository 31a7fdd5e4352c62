"""A result and an error as lines, as JSON and as an exit code."""

from __future__ import annotations

import json

import pytest

from handler.cli import diff, reports
from handler.cli.output import Output
from handler.model.errors import AnnealError, Busy, ConfigInvalid, ManifestInvalid, Problem, Suspended
from handler.model.plan import Action, Change, Plan
from handler.model.result import Outcome
from tests.unit.cli.shop_plan import HELD, MANIFEST, ONE, PLAN, TWO, result


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.APPLIED, 0),
        (Outcome.UNCHANGED, 0),
        (Outcome.PLANNED, 0),
        (Outcome.DRIFTED, 0),
        (Outcome.FAILED, 1),
        (Outcome.PRUNING, 1),
        (Outcome.HELD, 3),
        (Outcome.BUSY, 4),
        (Outcome.SUPERSEDED, 4),
        (Outcome.SUSPENDED, 4),
    ],
)
def test_each_outcome_has_its_exit_code(outcome: Outcome, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert reports.result(Output(), result(outcome)) == code
    assert f"shop: {outcome} cccccccccccc in 1.2 s" in capsys.readouterr().out


def test_every_outcome_is_in_the_table() -> None:
    assert set(reports.EXIT) == set(Outcome)


@pytest.mark.parametrize(("failure", "code"), [(ManifestInvalid, 1), (ConfigInvalid, 1), (Busy, 4), (Suspended, 4)])
def test_an_error_is_its_problems_each_with_its_way_out(failure: type[AnnealError], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    error = failure(Problem("Deployment/shop/api", "was seen", "api.yaml:3", "write this"), Problem("Service/shop/old", "too"))
    assert reports.error(Output(), error) == code
    assert capsys.readouterr().err == "api.yaml:3: Deployment/shop/api: was seen\n    write this\nService/shop/old: too\n"


def test_a_declared_object_that_reconcile_disabled_skips_is_always_shown(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "kustomize.toolkit.fluxcd.io/reconcile: disabled, set live"
    kept = Change(Action.SKIP, ONE, "u1", "8", reason, manifest=MANIFEST)
    plan = Plan("shop", "c" * 40, ((kept,),), (Change(Action.SKIP, TWO, "u2", "9", "owned by Shop main"),))
    diff.show(Output(), plan)
    assert capsys.readouterr().out.splitlines() == [f". kept Deployment/shop/api  ({reason})", "shop at cccccccccccc: 2 kept"]
    ended = result(Outcome.APPLIED, plan)
    reports.result(Output(), ended)
    assert capsys.readouterr().out.splitlines()[0] == f"Deployment/shop/api skipped  ({reason})"
    assert [change["object"] for change in reports.facts(ended)["kept"]] == [str(ONE)]
    assert plan.verdict == "live equals git, but for 1 left alone"


def test_changes_that_were_written_are_printed_in_past_participles(capsys: pytest.CaptureFixture[str]) -> None:
    reports.result(Output(), result(Outcome.APPLIED))
    assert capsys.readouterr().out.splitlines() == [
        "Deployment/shop/api configured",
        "    spec.replicas: 3 → 2  (live by kubectl-edit)",
        "    - spec.paused: true → (removed)",
        "Service/shop/old pruned  (no longer declared)",
        "shop: applied cccccccccccc in 1.2 s: 1 configured, 1 pruned",
    ]


def test_a_change_printed_as_it_was_written_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    reports.result(Output(), result(Outcome.APPLIED), printed={ONE})
    assert capsys.readouterr().out.splitlines()[0] == "Service/shop/old pruned  (no longer declared)"


def test_a_held_plan_ends_in_its_approve_command(capsys: pytest.CaptureFixture[str]) -> None:
    reports.result(Output(), result(Outcome.HELD))
    assert "allow exactly that: anneal approve shop 58eb1fd1ec42" in capsys.readouterr().out.splitlines()


def test_the_json_of_a_run_has_everything_but_the_objects(capsys: pytest.CaptureFixture[str]) -> None:
    reports.result(Output(as_json=True), result(Outcome.HELD))
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["held"]["id"], found["nextTry"]) == ("held", HELD.id, None)
    shown = [(change["object"], change["done"]) for change in found["changes"]]
    assert shown == [("Deployment/shop/api", False), ("Service/shop/old", False)]
    assert found["notes"] == list(PLAN.notes) != []
    assert reports.plan_facts(PLAN)["digest"] == PLAN.digest()


def test_a_failed_run_prints_what_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    (updated,) = PLAN.stages[0]
    ended = result(Outcome.FAILED, None, problems=(Problem("Service/shop/old", "no"),), written=(updated,), counts={"configured": 1})
    reports.result(Output(), ended)
    assert capsys.readouterr().out.splitlines() == [
        "Deployment/shop/api configured",
        "    spec.replicas: 3 → 2  (live by kubectl-edit)",
        "    - spec.paused: true → (removed)",
        "shop: failed cccccccccccc in 1.2 s: 1 configured",
    ]
    (shown,) = reports.facts(ended)["changes"]
    assert (shown["object"], shown["action"], shown["done"]) == ("Deployment/shop/api", "update", True)


def test_a_held_run_prints_what_it_wrote_and_its_held_changes(capsys: pytest.CaptureFixture[str]) -> None:
    (updated,) = PLAN.stages[0]
    reports.result(Output(), result(Outcome.HELD, written=(updated,)))
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  ")]
    assert lines[:2] == ["Deployment/shop/api configured", "shop waits for approval:"]
    shown = reports.facts(result(Outcome.HELD, written=(updated,)))["changes"]
    assert [change["done"] for change in shown] == [True, False, False]
