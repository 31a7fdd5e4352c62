"""`anneal replay`: asks a running server for a run, and follows it to its end. It needs no configuration file and no cluster."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any

import click

from handler.cli import diff, reports
from handler.cli.server_client import ServerClient, ServerRefused, ServerUnavailable
from handler.cli.session import Session
from handler.config import value_formats
from handler.model.advice import advice
from handler.model.backoff import Backoff
from handler.model.errors import AccessDenied, Problem
from handler.model.plan import Hold
from handler.model.result import Outcome, Result

UNKNOWN_SECONDS = 30.0  # how long a run may be unknown: a worker that has just begun gets it again
_ID = re.compile(r"[A-Za-z0-9._-]{1,300}")
PAUSES = Backoff(0.25, 2.0, factor=1.5)  # between two questions how a run stands


def _duration(text: str) -> float:
    found = value_formats.seconds(text)
    if found is None:
        raise click.BadParameter("expected a duration, e.g. 90s or 15m", click.get_current_context(), param_hint="'--timeout'")
    return found


def replay(
    session: Session,
    *,
    target: str,
    server: str | None,
    ca_file: str,
    insecure_http: bool,
    wait: bool | None,
    timeout: str,
    as_json: bool,
    **asked: Any,
) -> int:
    """Ask the server for a run of TARGET, in the name of the token in ANNEAL_TOKEN."""
    session.output.as_json = session.output.as_json or as_json
    longest = _duration(timeout)
    remote = _remote(session, server, ca_file, insecure_http=insecure_http)
    answer = remote.post("replay", target, body=_body(**asked))
    run = _id(answer.get("run"))
    session.output.line(f"{target}: run {run}")
    found = _followed(session, remote, run, longest, wait) if wait is not False else None
    if found is None:
        if session.output.as_json:
            session.output.document(answer)
        return reports.DONE_CODE
    return _reported(session, found)


def _remote(session: Session, server: str | None, ca_file: str, *, insecure_http: bool) -> ServerClient:
    token = session.environ.get("ANNEAL_TOKEN", "").strip()
    if not server:
        raise click.UsageError("which server? pass --server URL or set ANNEAL_SERVER")
    if not token:
        raise click.UsageError("set ANNEAL_TOKEN to the value of one of the server's `replay.tokens`; a token is never a flag")
    return ServerClient(server, token, ca_file, insecure_http=insecure_http)


def _body(*, commit: str, dry_run: bool, force: bool, approve: str, unpin: bool, rollback: bool) -> dict[str, Any]:
    wanted = {"commit": commit, "dryRun": dry_run, "force": force, "approve": approve, "unpin": unpin, "rollback": rollback}
    return {key: value for key, value in wanted.items() if value}


def _followed(session: Session, remote: ServerClient, run: str, timeout: float, wait: bool | None) -> dict[str, Any] | None:
    """Return the run once it has ended; None: the token may not read, and `--wait` wasn't given."""
    with session.output.working(f"waiting for {run}"):
        try:
            return _ended(remote, run, timeout)
        except AccessDenied:
            if wait:
                raise
    session.output.note("not waited for: the token may not `read`")
    return None


def _ended(remote: ServerClient, run: str, timeout: float) -> dict[str, Any]:
    begun = time.monotonic()
    for asked in itertools.count(1):
        waited, pause = time.monotonic() - begun, PAUSES.after(asked)
        try:
            found = remote.get("api", "runs", run)
            if found.get("status") == "ended":
                return found
            last = ServerUnavailable.of(f"run {run}", _unended(found, timeout))
        except ServerUnavailable as error:
            last = error
        except ServerRefused as error:
            if error.status != 404 or waited > UNKNOWN_SECONDS:
                raise
            last = ServerUnavailable(*error.problems)
        if waited + pause > timeout:
            raise last
        time.sleep(pause)
    raise AssertionError  # pragma: no cover - count() never ends


def _unended(found: dict[str, Any], timeout: float) -> str:
    if found.get("status") == "unknown":
        return f"isn't recorded after {timeout:g} s: it waits in the queue or runs, and its end will be in the target's record"
    return f"hasn't ended within {timeout:g} s; it goes on"


def _reported(session: Session, found: dict[str, Any]) -> int:
    result, changed, held = _read(found)
    output = session.output
    if output.as_json:
        output.document(found)
        return reports.EXIT[result.outcome]
    for line in changed:
        output.line(f"  {line}")
    if held:
        diff.hold(output, result.target, held, advice("anneal replay {} --approve {}", result.target, held.id))
    return reports.result(output, result)


def _id(found: Any) -> str:
    """Return an id that a server sent; what is printed as a command holds no more than that. Raises ServerRefused."""
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise ServerRefused(Problem("server", f"names no id where one belongs, but {str(found)[:60]!a}"))
    return found


def _read(found: dict[str, Any]) -> tuple[Result, tuple[str, ...], Hold | None]:
    """Read the end of a run: how it ended, what it changed, what is held. Raises ServerRefused: the answer has another form."""
    try:
        return _result(found), tuple(map(str, found.get("changed") or ())), _hold(found.get("held"))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ServerRefused(Problem("server", f"reports the end of a run in a form that this version doesn't know: {error!r}")) from error


def _hold(held: Any) -> Hold | None:
    if not isinstance(held, dict):
        return None
    changes = tuple((str(each["action"]), str(each["object"]), str(each["uid"])) for each in held["changes"]["items"])
    return Hold(_id(held["id"]), tuple(map(str, held["reasons"])), changes)


def _result(found: dict[str, Any]) -> Result:
    problems = tuple(Problem(**{key: str(each[key]) for key in ("subject", "message", "place", "fix")}) for each in found["problems"])
    return Result(
        _id(found["target"]),
        Outcome(found["outcome"]),
        str(found["commit"]),
        str(found["trigger"]),
        str(found["message"]),
        {str(word): int(count) for word, count in found["counts"].items()},
        problems,
        str(found["who"]),
        str(found["code"]),
        float(found["duration"]),
        str(found["run"]),
    )
