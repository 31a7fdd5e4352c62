"""A plan for people: each object with its fields, live -> declared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.cli import diff, reports
from handler.cli.output import Output
from handler.model.plan import Action, Change, Due, FieldChange
from handler.model.result import Outcome
from tests.unit.cli.shop_plan import ONE, PLAN, TWO, result


def test_a_diff_of_many_fields_is_cut_to_twenty_lines_removed_fields_first_and_whole_on_v(capsys: pytest.CaptureFixture[str]) -> None:
    fields = (*(FieldChange(f"data.k{number}", "new", "old") for number in range(30)), FieldChange("data.gone", "", "old"))
    plan = replace(PLAN, stages=((replace(PLAN.stages[0][0], fields=fields),),), prunes=(), notes=(), hold=None)
    diff.show(Output(), plan)
    shown = capsys.readouterr().out.splitlines()[1:-1]
    assert (shown[0], shown[1], shown[-1]) == (
        "    - data.gone: old → (removed)",
        "    data.k0: old → new",
        "    and 12 fields more; -v shows all",
    )
    assert len(shown) == 20
    reports.result(Output(verbose=True), result(Outcome.APPLIED, plan))
    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]) == 31


def test_a_plan_shows_live_then_declared(capsys: pytest.CaptureFixture[str]) -> None:
    diff.show(Output(), PLAN)
    assert capsys.readouterr().out.splitlines()[:5] == [
        "~ update Deployment/shop/api  api.yaml:1",
        "    spec.replicas: 3 → 2  (live by kubectl-edit)",
        "    - spec.paused: true → (removed)",
        "- prune Service/shop/old  (no longer declared)",
        "shop at cccccccccccc: 1 to update, 1 to prune; 1 field removed",
    ]


def test_the_commands_that_notes_name_are_complete(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(verbose=True)
    output.complete = lambda text: text.replace("anneal ", "anneal -c b.yaml ")
    plan = replace(PLAN, notes=("`anneal retire shop --namespace jobs --prune` deletes",))
    note = "note: `anneal -c b.yaml retire shop --namespace jobs --prune` deletes"
    diff.show(output, plan)
    assert note in capsys.readouterr().out
    reports.result(output, result(Outcome.APPLIED, plan))
    assert note in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (Change(Action.UPDATE, ONE, "u1", "8", "adopted", adopted=True), "(adopted)"),
        (
            Change(Action.UPDATE, ONE, "u1", "8", "Namespace/shop comes first", deferred=True, adopted=True),
            "(Namespace/shop comes first; adopted; checked in its stage)",
        ),
        (Change(Action.UPDATE, ONE, "u1", "8", "taken over from bank", adopted=True, sibling="bank"), "(taken over from bank)"),
    ],
)
def test_a_plan_says_an_adoption_once(change: Change, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    diff.show(Output(), replace(PLAN, stages=((change,),), prunes=(), notes=(), hold=None))
    assert capsys.readouterr().out.splitlines()[0] == f"~ update Deployment/shop/api  {shown}"


def test_a_plan_names_on_v_what_stays_undeclared(capsys: pytest.CaptureFixture[str]) -> None:
    (change,) = PLAN.stages[0]
    plan = replace(PLAN, stages=((replace(change, undeclared=(FieldChange("spec.replicas", "", "4", "keda"),)),),))
    diff.show(Output(), plan)
    assert "undeclared" not in capsys.readouterr().out
    diff.show(Output(verbose=True), plan)
    assert "    spec.replicas: 4  (undeclared, by keda; it stays)" in capsys.readouterr().out.splitlines()
    (stage,) = reports.plan_facts(plan)["stages"]
    assert stage[0]["undeclared"][0].manager == "keda"


def test_a_plan_shows_its_due_hooks_and_steps(capsys: pytest.CaptureFixture[str]) -> None:
    hook, step = Due("PreSync", str(TWO), TWO, "run"), Due("web", "roll", ONE, "CreateOrUpdate")
    plan = replace(PLAN, stages=(), prunes=(), notes=(), hold=None, due=(hook, step))
    diff.show(Output(), plan)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "> PreSync: run Service/shop/old",
        "> web: roll: CreateOrUpdate Deployment/shop/api",
    ]
    shown = [(due["group"], due["step"], due["object"], due["action"]) for due in reports.plan_facts(plan)["due"]]
    assert shown == [("PreSync", "Service/shop/old", "Service/shop/old", "run"), ("web", "roll", "Deployment/shop/api", "CreateOrUpdate")]
