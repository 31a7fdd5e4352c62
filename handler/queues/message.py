"""The job's codec. Between our own processes a job goes whole (`document`, `read`); a queue gets it as one message (`encode`, `decode`).

A message is compact JSON of less than 2 KB, versioned, without payload and without secret. Law: what decides about a run is whole or the
message isn't made (target, acts, approvals); what only describes it is cut (names, old deliveries). A message is untrusted input: anything
that `encode` doesn't write is a ValueError.

A document has every field of a Work and of its Job but `run`, `named` and `joined`, which `Work.begun` makes of the ids. A message has no
`asked` and `actors`, a `moment` only of a plan, and one id: that of its run.

Another version is refused, never guessed at: the field that an old process doesn't know may be what makes a run a dry run. Nothing is lost
by that. A message of SQS becomes a dead letter, to be redriven when all workers are upgraded: upgrade them before what sends. On the socket
a push is dropped, for the tick finds its commit, and the web process asks about a named request until a worker takes it.
A new field that decides, or another form of one, is a new VERSION; one that only describes isn't: readers pass over what they don't know.
What asks for a pull request's plan is of a version of its own, for `comments` decide and its target is no target's name: an old process
refuses it, and it alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from handler.model.event import MOST_COMMENTS, NAMED, PULL_REQUEST, Delivery, Job
from handler.model.instance import TARGET_NAME
from handler.model.names import run_id, target_of
from handler.model.pull_request import lead_target
from handler.queues.pending import Work

VERSION = 1
VERSIONS = {PULL_REQUEST: 2}
"""Of triggers that came later than the others."""
PLANS = "plans~"
"""How the groups of plans on pull requests begin: no target's name holds a tilde."""
LANES = 2
"""Groups of plans that are made for the first time; one more is of those that are tried again."""
MOST = 2047
"""Bytes of a message."""
_READ = 8 * MOST
_TRIGGERS = ("push", "replay", "tick", "drift", "oneoff", PULL_REQUEST)
_FLAGS = {"force": "force", "dry_run": "dryRun", "unpin": "unpin", "rollback": "rollback", "changed": "changed"}
_LONGEST = {"id": 128, "provider": 32, "ref": 200, "actor": 100, "received": 32}
"""Bytes of a delivery's description."""
_OURS = frozenset({"deliveries", "asked", "moment", "merged", "named", "actors"})
"""Of a whole document what a message has in another form, or not at all."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_APPROVE = re.compile(r"[A-Za-z0-9._-]{1,128}")
_COMMENT = re.compile(r"[A-Za-z0-9_-]{1,64}(?:/[A-Za-z0-9_-]{1,64})?")
_PLAN = re.compile(r"[^~.]{1,56}~[1-9][0-9]{0,8}")  # no instance is planned
_RUN = re.compile(r"[0-9a-f]{1,64}")
_LOOKS = 20
_LATEST = 1e11  # seconds since the epoch: far ahead


def document(work: Work) -> dict[str, Any]:
    """Write a job whole, as JSON values; what is empty is left out."""
    job = work.job
    if job.promote:
        raise ValueError("a promotion is asked for in the process that does it")
    written: dict[str, Any] = {"v": _version(job.trigger), "run": work.run, "target": job.target, "trigger": job.trigger}
    written |= {"commit": job.commit, "approve": job.approve, "looks": job.looks, "hint": job.hint, "comments": [*job.comments]}
    written |= {key: getattr(job, name) for name, key in _FLAGS.items()} | {"noPrune": not job.prune, "actor": job.actor}
    written["deliveries"] = [[getattr(delivery, name) for name in (*_LONGEST, "hint")] for delivery in job.deliveries]
    written |= {"asked": job.asked, "moment": job.moment, "merged": work.runs[1:], "named": work.named, "actors": work.actors}
    return {key: value for key, value in written.items() if value}


def read(written: Any) -> Work:
    """Read what `document` wrote in another process of ours; its texts may be of any length. Raises ValueError."""
    try:
        _check_version(written, VERSION)
        actors = tuple((str(run), str(actor)) for run, actor in written.get("actors", ()))
        job = replace(_job(written, own=True), asked=float(written.get("asked", 0.0)), moment=float(written.get("moment", 0.0)))
        return Work(job, (str(written["run"]), *written.get("merged", ())), tuple(written.get("named", ())), actors)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a job: {error}") from error


def encode(work: Work) -> str:
    """Write a message; of its deliveries the newest, as many as there is room for. Raises ValueError: what decides doesn't fit."""
    written = {key: value for key, value in document(work).items() if key not in _OURS or (key == "moment" and work.job.is_plan)}
    written |= {"hint": _commit(work.job.hint), "actor": _cut(work.job.actor, _LONGEST["actor"])}
    written = {key: value for key, value in written.items() if value}
    _work(written)  # what couldn't be read isn't sent
    deliveries: list[list[str]] = []
    for delivery in reversed(work.job.deliveries):
        row = [_cut(getattr(delivery, name), most) for name, most in _LONGEST.items()] + [_commit(delivery.hint)]
        if len(_json(written | {"deliveries": [row, *deliveries]})) > MOST:
            break
        deliveries.insert(0, row)
    return _json(written | ({"deliveries": deliveries} if deliveries else {}))


def decode(body: str) -> Work:
    """Read a message. When it was asked isn't in it: no look at the git host from before now serves it. Raises ValueError."""
    if len(body) > _READ:
        raise ValueError(f"a message of {len(body)} characters")
    try:
        written = json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(written, dict):
        raise ValueError("not an object")  # noqa: TRY004 - all that is wrong with a message is one class
    return _work(written)


def group(job: Job) -> str:
    """Return the FIFO group of a request: its target, so that a target is serial.

    Plans on pull requests share a few groups, so that however many there are, they have no more workers than that: others cause them.
    """
    if not job.is_plan:
        return job.target
    return f"{PLANS}{LANES if job.looks else int(_hash(job.target)[:8], 16) % LANES}"


def identified(job: Job) -> str:
    """Return the id of a request's run. A push has the same however often it is delivered: one that the queue drops has it, too."""
    if job.run:
        return job.run
    return f"{job.target}.{_digest(job)[:12]}" if _is_delivered(job) else run_id(job.target)


def deduplication(job: Job, run: str) -> str:
    """Return by what a queue knows a request that it has already: delivery and target, never the commit, for a branch may come back to it.

    What the clock asks for is known by its moment, whenever that is sent. What was asked by name is done as often as it is asked.
    """
    if _is_delivered(job):
        return _digest(job)
    if job.moment and not job.acts:
        return _hash(job.trigger, job.target, str(round(job.moment * 1000)))
    return _hash("run", run)


def _is_delivered(job: Job) -> bool:
    return job.trigger == "push" and not job.acts and bool(job.deliveries) and all(delivery.id for delivery in job.deliveries)


def _digest(job: Job) -> str:
    deliveries = [part for delivery in job.deliveries for part in (delivery.provider, delivery.id)]
    return _hash("push", job.target, str(job.looks), *deliveries)


def _hash(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _json(written: Mapping[str, Any]) -> str:
    return json.dumps(written, separators=(",", ":"))  # ASCII: a character is a byte, and SQS refuses none of them


def _commit(hint: str) -> str:
    return hint if _COMMIT.fullmatch(hint) else ""


def _cut(text: str, most: int) -> str:
    """Return a text of at most `most` bytes of JSON; of a longer one the beginning and a mark that keeps it apart from others."""
    text = text.encode("utf-8", "replace").decode()
    if len(json.dumps(text)) - 2 <= most:
        return text
    mark = f"~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    kept = text[: most - len(mark)]
    while len(json.dumps(kept)) - 2 > most - len(mark):
        kept = kept[:-1]
    return kept + mark


# --- reading
def _work(written: dict[str, Any]) -> Work:
    _check_version(written, None)
    run, trigger = _text(written, "run"), _text(written, "trigger")
    if trigger not in _TRIGGERS:
        raise ValueError(f"unknown trigger {trigger[:40]!a}")
    target = _plan_of(_text(written, "target", _PLAN)) if trigger == PULL_REQUEST else _text(written, "target", TARGET_NAME)
    if target_of(run) != target or not _RUN.fullmatch(run[len(target) + 1 :]):
        raise ValueError("the run isn't the target's")
    job = _job(written)
    if job.is_plan:
        job = replace(job, moment=_seconds(written.get("moment", 0.0)))
    _refuse_together(job)
    return Work(job, (run,), (run,) if trigger in NAMED else ())


def _plan_of(name: str) -> str:
    if not TARGET_NAME.fullmatch(lead_target(name)):
        raise ValueError(f"target is {name[:40]!a}")
    return name


def _version(trigger: Any) -> int:
    return VERSIONS.get(trigger, VERSION) if isinstance(trigger, str) else VERSION


def _check_version(written: dict[str, Any], unnamed: int | None) -> None:
    """Refuse every version but that of the trigger. `unnamed`: the one of a text that names none; None: it must name one."""
    this = _version(written.get("trigger"))
    version = written.get("v", unnamed)
    if type(version) is not int or version != this:
        raise ValueError(f"version {version!r:.40}; this is {this}")


def _job(written: dict[str, Any], *, own: bool = False) -> Job:
    """Read a job; one of `own` processes has texts of any form."""
    text = partial(_text, written, own=own)
    return Job(
        target=text("target"),
        trigger=text("trigger"),
        hint=text("hint", _COMMIT, ""),
        commit=text("commit", _COMMIT, ""),
        force=_flag(written, "force"),
        dry_run=_flag(written, "dryRun"),
        prune=not _flag(written, "noPrune"),
        approve=text("approve", _APPROVE, ""),
        unpin=_flag(written, "unpin"),
        rollback=_flag(written, "rollback"),
        actor=text("actor", None, ""),
        deliveries=_deliveries(written.get("deliveries", []), own=own),
        looks=_number(written.get("looks", 0)),
        comments=_comments(written.get("comments", [])),
        changed=_flag(written, "changed"),
    )


def _refuse_together(job: Job) -> None:
    """Refuse what the door refuses (`web.replay`), too. Raises ValueError."""
    if job.commit and job.force:  # a host serves the commits of forks under the parent's address, too
        raise ValueError("a commit that is forced")
    if job.rollback and job.force:
        raise ValueError("a rollback that is forced")
    if bool(job.commit) + job.unpin + job.rollback > 1:
        raise ValueError("more than one of commit, unpin and rollback")
    if (job.comments and not job.is_plan) or (job.changed and not job.comments):
        raise ValueError("a comment on something else than a plan")
    if job.is_plan and (job.acts or job.hint):
        raise ValueError("a plan on a pull request that asks for something else, too")


def _comments(ids: Any) -> tuple[str, ...]:
    if not isinstance(ids, list) or len(ids) > MOST_COMMENTS or not all(isinstance(each, str) and _COMMENT.fullmatch(each) for each in ids):
        raise ValueError("comments aren't ids of comments")
    return tuple(ids)


def _deliveries(rows: Any, *, own: bool) -> tuple[Delivery, ...]:
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(_LONGEST) + 1 for row in rows):
        raise ValueError("deliveries aren't rows of texts")
    read = [[_plain(value, "a delivery", own=own) for value in row] for row in rows]
    named = [dict(zip((*_LONGEST, "hint"), row, strict=True)) for row in read]
    return tuple(Delivery(**row) for row in named)


def _text(written: dict[str, Any], key: str, form: re.Pattern[str] | None = None, default: str | None = None, *, own: bool = False) -> str:
    if key not in written and default is not None:
        return default
    value = _plain(written.get(key), key, own=own)
    if form and not own and not form.fullmatch(value):
        raise ValueError(f"{key} is {value[:40]!a}")
    return value


def _plain(value: Any, key: str, *, own: bool) -> str:
    """Return a text; one that isn't our own must be such that can be written anywhere."""
    if not isinstance(value, str) or (not own and (len(value) > MOST or any("\ud800" <= each <= "\udfff" for each in value))):
        raise ValueError(f"{key} is no text")
    return value


def _flag(written: dict[str, Any], key: str) -> bool:
    value = written.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{key} is neither true nor false")  # noqa: TRY004 - all that is wrong with a message is one class
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= _LATEST:
        raise ValueError("moment is no time")
    return float(value)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LOOKS:
        raise ValueError("looks is no count")
    return value
