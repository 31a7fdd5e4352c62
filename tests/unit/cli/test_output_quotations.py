"""What others say is printed as a quotation: on no surface of a terminal does it begin a line, as a command of ours does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.target_row import NewestCommit, TargetRow
from handler.cli import diff, gap, reports, rollout_lines, target_page
from handler.cli.follow_up_commands import NOTHING_GIVEN
from handler.cli.output import Output
from handler.cluster.errors import refused
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.errors import GitUnavailable, ManifestInvalid, Problem
from handler.model.names import Identity
from handler.model.plan import Cause, FieldChange, Gone
from handler.model.result import Outcome
from handler.model.tree import CommitInfo
from handler.plan.diff import text_of
from handler.state.heartbeat import UNREAD
from handler.state.record import Drift, HeldPlan, Orphan, Pin, Progress, Run, RunStatus, State, StepRecord, Suspend, TargetHealth
from handler.state.record_format import read_record, seconds_of, write_record
from handler.state.summary import Summary
from tests.unit.cli.shop_plan import ONE, PLAN, result
from tests.unit.state.samples import NOON, blank, sha

pytestmark = pytest.mark.slow

TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))
EVIL = "x”\n    kubectl delete ns prod\n\u2028kubectl\r\nkubectl delete ns\x1b[2K\u202e"
ODD = Identity("rbac.authorization.k8s.io", "Role", "shop", EVIL)
STRANGE = text_of(("kubectl delete ns prod", EVIL))


def applied(output: Output) -> None:
    """`apply`, refused as the API server does: tests/…/service.json has a field of such a name."""
    words = f'Service in version "v1" cannot be handled as a Service: strict decoding error: unknown field "spec.{EVIL}"'
    body = {"kind": "Status", "status": "Failure", "message": words, "reason": "BadRequest", "code": 400}
    for status in (400, 403, 409, 422, 500):
        reports.error(output, refused(status, body, "PATCH", "/api/v1/namespaces/shop/services/x", str(ODD)))


def ended(output: Output) -> None:
    problems = (Problem(EVIL, EVIL, EVIL),)
    reports.result(output, result(Outcome.FAILED, problems=problems))
    reports.error(output, ManifestInvalid(*problems))
    reports.result(output, result(Outcome.REFUSED, None, message=EVIL))


def planned(output: Output) -> None:
    change = replace(PLAN.stages[0][0], identity=ODD, reason=EVIL, fields=(FieldChange(STRANGE, EVIL, EVIL, EVIL),), undeclared=())
    gone = Gone(ODD, "u", next(iter(Cause)), ONE)
    hold = replace(PLAN.hold, reasons=(EVIL,), changes=(("prune", str(ODD), "u"),)) if PLAN.hold else None
    diff.show(output, replace(PLAN, stages=((replace(change, takes=(gone,)),),), notes=(EVIL,), hold=hold))
    diff.hold(output, "shop", hold) if hold else None


def stepped(output: Output) -> None:
    step = StepRecord(EVIL, EVIL, str(ODD), EVIL, NOON, NOON, "failed", EVIL)
    for text, _ in rollout_lines.tree(Progress(sha(), "d" * 64, NOON, steps=(step,)), seconds_of(NOON)):
        output.line(text)
    output.line(rollout_lines.step_line(step))


def status(output: Output) -> None:
    step = StepRecord(EVIL, EVIL, str(ODD), EVIL, NOON, "", "failed", EVIL)
    run = Run("r", "push", "refused", NOON, sha(), EVIL, EVIL * 1_000, EVIL, message=EVIL, changed=(EVIL,))
    forged = blank(
        commit=sha(),
        status=RunStatus("failed", NOON, unhealthy=(EVIL,), message=EVIL),
        health=TargetHealth("degraded", NOON, NOON, (EVIL,), (EVIL,)),
        held=HeldPlan("h1", (EVIL,), (("prune", str(ODD), "u"),), sha(), "b" * 64, "c" * 64, NOON),
        pin=Pin(sha(), by=EVIL, reason=EVIL, at=NOON),
        suspend=Suspend(EVIL, EVIL, at=NOON),
        drift=(Drift(ONE, EVIL, EVIL, EVIL, EVIL),),
        orphans=(Orphan("u", ONE, NOON, EVIL),),
        history=(run,),
        rollout=Progress(sha(), "d" * 64, NOON, steps=(step,)),
    )
    state = read_record(State, write_record(forged, ("target", "installation", "cluster_uid", "commit")))
    for held in (forged, state):
        trouble = GitUnavailable.of(EVIL, EVIL)
        for newest in (NewestCommit(sha("b"), CommitInfo(sha("b"), EVIL, EVIL, 0)), NewestCommit(trouble=trouble)):
            row = TargetRow(TARGET, seconds_of(NOON), recorded=True, summary=Summary.of(held), state=held, newest=newest, pulse=UNREAD)
            target_page.show(output, row, NOTHING_GIVEN)


def gapped(output: Output) -> None:
    for cells in (gap._HEADS, (EVIL, STRANGE, EVIL, EVIL, EVIL)):
        output.line(gap._row(cells, (10, 80, 32, 32, 24)), whole=True)
    output.table(("SUBJECT",), [(EVIL,)])
    output.note(EVIL)


@pytest.mark.parametrize("surface", [applied, ended, planned, stepped, status, gapped])
def test_nothing_of_others_begins_a_line(surface: Callable[[Output], None], capsys: pytest.CaptureFixture[str]) -> None:
    surface(Output(verbose=True))
    shown = "".join(capsys.readouterr())
    assert "delete ns prod" in shown
    assert not [line for line in shown.split("\n") if line.lstrip().startswith(("kubectl", "\x1b"))]
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert max(map(len, shown.split("\n"))) < 10_000


def test_json_has_it_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    reports.error(Output(as_json=True), ManifestInvalid(Problem("a", EVIL)))
    shown = capsys.readouterr().out
    assert "\n" not in json.loads(shown)["problems"][0]["message"]
