"""What is printed: masked, escaped, the same facts as text, JSON and YAML; and which exit code says it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from handler.cli import diff, reports
from handler.cli.check_table import Findings
from handler.cli.output import Output, wrapped
from handler.cli.render import as_yaml
from handler.config.secret_mask import Mask
from handler.model.errors import AnnealError, Busy, ConfigInvalid, ManifestInvalid, Problem, Suspended
from handler.model.field_masking import masked
from handler.model.manifest import Manifest
from handler.model.names import GroupKind, Identity
from handler.model.plan import Action, Change, Due, FieldChange, Hold, Plan
from handler.model.result import ONLY_PLANNED, Outcome, Result
from handler.model.to_json import plain

SECRET = "canary-0123456789"
ONE = Identity("apps", "Deployment", "shop", "api")
TWO = Identity("", "Service", "shop", "old")
FIELDS = (FieldChange("spec.replicas", "2", "3", "kubectl-edit"), FieldChange("spec.paused", "", "true"))
MANIFEST = Manifest.of({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}}, "api.yaml:1")
PRUNED = Change(Action.PRUNE, TWO, "u2", "9", "no longer declared")
HELD = Hold("58eb1fd1ec42", ("2 of 3 live objects",), (PRUNED.key(),))
PLAN = Plan(
    "shop", "c" * 40, ((Change(Action.UPDATE, ONE, "u1", "8", fields=FIELDS, manifest=MANIFEST),),), (PRUNED,), ("a note",), HELD, 3
)


def result(outcome: Outcome, plan: Plan | None = PLAN, **more: Any) -> Result:
    done = {"written": plan.writes} if plan and outcome not in ONLY_PLANNED else {}
    made = Result("shop", outcome, "c" * 40, "oneoff", "message", plan.counts() if plan else {}, plan=plan, duration=1.25)
    return replace(made, **(done | more))


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


def test_what_git_declares_and_is_left_alone_is_always_shown(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_what_was_done_is_told_in_past_participles(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_of_many_fields_twenty_lines_are_shown_what_goes_first_and_all_on_v(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_what_is_held_ends_in_the_command_that_allows_it(capsys: pytest.CaptureFixture[str]) -> None:
    reports.result(Output(), result(Outcome.HELD))
    assert "allow exactly that: anneal approve shop 58eb1fd1ec42" in capsys.readouterr().out.splitlines()


def test_a_plan_shows_live_then_declared(capsys: pytest.CaptureFixture[str]) -> None:
    diff.show(Output(), PLAN)
    assert capsys.readouterr().out.splitlines()[:5] == [
        "~ update Deployment/shop/api  api.yaml:1",
        "    spec.replicas: 3 → 2  (live by kubectl-edit)",
        "    - spec.paused: true → (removed)",
        "- prune Service/shop/old  (no longer declared)",
        "shop at cccccccccccc: 1 to update, 1 to prune; 1 field removed",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Change(Action.UPDATE, ONE, "u1", "8", "adopted", adopted=True), "(adopted)"),
        (
            Change(Action.UPDATE, ONE, "u1", "8", "Namespace/shop comes first", deferred=True, adopted=True),
            "(Namespace/shop comes first; adopted; checked in its stage)",
        ),
        (Change(Action.UPDATE, ONE, "u1", "8", "taken over from bank", adopted=True, sibling="bank"), "(taken over from bank)"),
    ],
)
def test_a_plan_tells_an_adoption_once(change: Change, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    diff.show(Output(), replace(PLAN, stages=((change,),), prunes=(), notes=(), hold=None))
    assert capsys.readouterr().out.splitlines()[0] == f"~ update Deployment/shop/api  {told}"


def test_a_plan_names_on_v_what_stays_undeclared(capsys: pytest.CaptureFixture[str]) -> None:
    (change,) = PLAN.stages[0]
    plan = replace(PLAN, stages=((replace(change, undeclared=(FieldChange("spec.replicas", "", "4", "keda"),)),),))
    diff.show(Output(), plan)
    assert "undeclared" not in capsys.readouterr().out
    diff.show(Output(verbose=True), plan)
    assert "    spec.replicas: 4  (undeclared, by keda; it stays)" in capsys.readouterr().out.splitlines()
    (stage,) = reports.plan_facts(plan)["stages"]
    assert stage[0]["undeclared"][0].manager == "keda"


def test_a_plan_tells_which_hooks_and_steps_it_carries_out(capsys: pytest.CaptureFixture[str]) -> None:
    hook, step = Due("PreSync", str(TWO), TWO, "run"), Due("web", "roll", ONE, "CreateOrUpdate")
    plan = replace(PLAN, stages=(), prunes=(), notes=(), hold=None, due=(hook, step))
    diff.show(Output(), plan)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "> PreSync: run Service/shop/old",
        "> web: roll: CreateOrUpdate Deployment/shop/api",
    ]
    told = [(due["group"], due["step"], due["object"], due["action"]) for due in reports.plan_facts(plan)["due"]]
    assert told == [("PreSync", "Service/shop/old", "Service/shop/old", "run"), ("web", "roll", "Deployment/shop/api", "CreateOrUpdate")]


def test_the_json_of_a_run_has_everything_but_the_objects(capsys: pytest.CaptureFixture[str]) -> None:
    reports.result(Output(as_json=True), result(Outcome.HELD))
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["held"]["id"], found["nextTry"]) == ("held", HELD.id, None)
    told = [(change["object"], change["done"]) for change in found["changes"]]
    assert told == [("Deployment/shop/api", False), ("Service/shop/old", False)]
    assert found["notes"] == list(PLAN.notes) != []
    assert reports.plan_facts(PLAN)["digest"] == PLAN.digest()


def test_a_run_that_failed_in_the_middle_tells_what_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    (updated,) = PLAN.stages[0]
    ended = result(Outcome.FAILED, None, problems=(Problem("Service/shop/old", "no"),), written=(updated,), counts={"configured": 1})
    reports.result(Output(), ended)
    assert capsys.readouterr().out.splitlines() == [
        "Deployment/shop/api configured",
        "    spec.replicas: 3 → 2  (live by kubectl-edit)",
        "    - spec.paused: true → (removed)",
        "shop: failed cccccccccccc in 1.2 s: 1 configured",
    ]
    (told,) = reports.facts(ended)["changes"]
    assert (told["object"], told["action"], told["done"]) == ("Deployment/shop/api", "update", True)


def test_a_run_that_wrote_and_then_waits_for_a_person_tells_both(capsys: pytest.CaptureFixture[str]) -> None:
    (updated,) = PLAN.stages[0]
    reports.result(Output(), result(Outcome.HELD, written=(updated,)))
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  ")]
    assert lines[:2] == ["Deployment/shop/api configured", "shop waits for approval:"]
    told = reports.facts(result(Outcome.HELD, written=(updated,)))["changes"]
    assert [change["done"] for change in told] == [True, False, False]


# --- masks
def test_nothing_leaves_unmasked_or_obeyed_by_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text, as_json = Output(verbose=True), Output(as_json=True)
    text.mask = as_json.mask = Mask.of([SECRET])
    text.line(f"a {SECRET} \x1b]0;title\x07 \u202e")
    text.detail(SECRET)
    text.note(SECRET)
    text.text(f"{SECRET}\n")
    text.table(["HEAD"], [[f"{SECRET}\nline"]])
    reports.unexpected(text, ValueError(SECRET))
    reports.problems(text, [Problem(SECRET, SECRET, SECRET, SECRET)])
    as_json.document({SECRET: [SECRET, {"key": SECRET}]})
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert printed.out.splitlines()[0] == "a *** \\x1b]0;title\\x07 \\u202e"


def test_json_leaves_no_other_line_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=True)
    output.line("text")
    findings = Findings(output)
    findings.good("one", "well")
    findings.bad("two", [Problem("a", "b", fix="c")])
    findings.skip("three", "why")
    findings.document()
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], [row["verdict"] for row in found["checks"]]) == (False, ["ok", "failed", "skipped"])
    assert found["checks"][1]["problems"] == [{"subject": "a", "message": "b", "place": "", "fix": "c"}]


def test_findings_are_a_line_each_with_the_way_out_below(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings(Output())
    assert findings.step("one", lambda: "well")
    assert not findings.step("two", lambda: _raise(ConfigInvalid.of("file", "is wrong", place="a:1", fix="do this")))
    findings.warn("three", "is slow", "do that")
    assert capsys.readouterr().out.splitlines() == [
        "SUBJECT        VERDICT  SEEN",
        "one            ok       well",
        "two            failed   a:1: file: is wrong",
        "    → do this",
        "three          warning  is slow",
        "    → do that",
    ]


def _raise(error: AnnealError) -> str:
    raise error


# --- values
def test_values_become_json_as_kubernetes_spells_it() -> None:
    assert plain({"a": ONE, "b": frozenset({GroupKind("apps", "Deployment"), GroupKind("", "Pod")}), "c": Outcome.HELD}) == {
        "a": "Deployment/shop/api",
        "b": ["Deployment.apps", "Pod"],
        "c": "held",
    }
    assert plain(Change(Action.CREATE, ONE, resource_version="7"))["resourceVersion"] == "7"


@pytest.mark.parametrize(
    "text", ["", "yes", "No", "1e3", "0x10", "1_000", "012", "null", "~", "a: b", "*x", "- a", "#", "two\nlines\n", " a", "é", "=", "a\tb"]
)
def test_text_survives_yaml_and_is_quoted_where_a_decoder_could_take_it_for_more(text: str) -> None:
    written = as_yaml({"key": text})
    assert yaml.safe_load(written) == {"key": text}
    assert written.startswith(('key: "', "key: |"))


def test_yaml_keeps_plain_words_plain_and_writes_no_alias() -> None:
    shared = {"app": "shop"}
    assert as_yaml({"a": shared, "b": shared, "c": ["apps/v1"]}) == "a:\n  app: shop\nb:\n  app: shop\nc:\n  - apps/v1\n"


def test_a_whole_object_is_masked_in_its_shape() -> None:
    metadata = {"name": "login", "labels": {"app": "shop"}, "annotations": {"note": SECRET}}
    shown = masked({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"password": SECRET}})
    assert shown["metadata"] == {"name": "login", "labels": {"app": "shop"}, "annotations": {"note": "***"}}
    assert (shown["kind"], shown["type"], shown["data"]) == ("Secret", "Opaque", {"password": "***"})
    other = masked({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"api_token": SECRET, "colour": "red"}})
    assert other["data"] == {"api_token": "***", "colour": "red"}


LINE = "  unhealthy: Deployment/shop/api: 0 of 1 replica available; pod api-5c9f8d7b6-abcde: container main waits: CrashLoopBackOff"


def test_a_line_is_wrapped_at_the_terminals_width_under_its_own_text() -> None:
    assert wrapped(LINE, None) == LINE
    assert wrapped(LINE, 60, 13).split("\n") == [
        "  unhealthy: Deployment/shop/api: 0 of 1 replica available;",
        "             pod api-5c9f8d7b6-abcde: container main waits:",
        "             CrashLoopBackOff",
    ]
    assert wrapped("short\n" + "a " * 10, 12).split("\n") == ["short", "a a a a a a", "  a a a a"]
    assert wrapped("    " + "x" * 40, 20) == "    " + "x" * 40, "what has no blank is broken by the terminal, so that it can be copied"


def test_a_command_in_a_text_isnt_broken_if_it_fits_on_a_line() -> None:
    assert wrapped("start it with `anneal serve` now", 24).split("\n") == ["start it with", "  `anneal serve` now"]
    assert wrapped("so `anneal apply shop --approve e0` now", 16).split("\n") == ["so `anneal apply", "  shop --approve", "  e0` now"]


def test_what_is_to_be_copied_stays_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    Output().line(LINE, whole=True)
    Output().line(LINE)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == LINE
    assert max(map(len, shown[1:])) <= 40
