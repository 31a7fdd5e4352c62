"""`anneal check`, and `anneal doctor`, which adds machine and server: all that a server and its runs need, looked at in turn.

    machine          doctor: Python, libraries, the render child and its walls          machine
    configuration    the file and whatever it refers to, as `serve` resolves it         references
    each target      git, cluster, render, rights, plan                                 target_checks
    server           doctor: the one that ANNEAL_SERVER names                           server_check

It changes nothing. A step whose ground is missing is left out, all others are looked at: one call shows everything that is wrong.
"""

from __future__ import annotations

from pathlib import Path

from handler.cli import check_references, doctor_machine, doctor_server, reports
from handler.cli.check_table import Findings
from handler.cli.check_target import CompareClocks, TargetChecks
from handler.cli.filenames import from_files
from handler.cli.session import Session
from handler.config.settings import Cluster, Target
from handler.model.errors import AnnealError, ConfigInvalid
from handler.model.numbers import many


@from_files()
def check(session: Session, target: str | None) -> int:
    """Look at configuration, secrets, git, cluster, rights, render and plan of TARGET; change nothing."""
    findings = Findings(session.output)
    if _configured(session, findings):
        chosen = _referred(session, target, findings)
        _targets(session, chosen, findings)
    return _ended(findings)


def doctor(session: Session, target: str | None, *, server: str | None, ca_file: str, insecure_http: bool) -> int:
    """Look at this machine and its tools, at what `anneal check` looks at, and at a running server; change nothing."""
    findings = Findings(session.output)
    doctor_machine.look(session, findings)
    chosen: tuple[Target, ...] = ()
    try:
        session.path  # noqa: B018 - it looks
    except ConfigInvalid as error:  # a machine may be looked at before anything is configured
        findings.warn("configuration", error.problems[0].message, error.problems[0].fix)
        doctor_machine.bare_cluster(session, findings)
    else:
        chosen = _referred(session, target, findings) if _configured(session, findings) else ()
    doctor_server.look(session, findings, server or "", ca_file, insecure_http=insecure_http, names=[each.name for each in chosen])
    _targets(session, chosen, findings, doctor_machine.MachineClocks(findings))
    return _ended(findings)


def _configured(session: Session, findings: Findings) -> bool:
    return findings.step("configuration", lambda: f"{_shown(session.path)}: {many(len(session.settings.targets), 'target')}")


def _shown(path: Path) -> str:
    """Return a path as it would be typed here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _referred(session: Session, target: str | None, findings: Findings) -> tuple[Target, ...]:
    """Look at what the configuration refers to; return the named target, or all."""
    chosen = session.all_or(target)
    check_references.look(session, chosen, findings, door=target is None)
    return chosen


def _targets(session: Session, chosen: tuple[Target, ...], findings: Findings, clocks: CompareClocks | None = None) -> None:
    verdicts: dict[Cluster, str | AnnealError] = {}
    for each in chosen:
        findings.about(each.name, heading=session.several)
        TargetChecks(session, each, findings, verdicts, clocks).run()


def _ended(findings: Findings) -> int:
    findings.document()
    return reports.FAILED if findings.failed else reports.DONE_CODE
