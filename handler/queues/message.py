"""A request as one message of a queue: compact JSON of less than 2 KB, versioned, without payload and without secret.

Law: what decides about a run is whole or the message isn't made (target, acts, who approved what); what only tells of it is cut (names,
old deliveries). What is read here is untrusted: anything else than what `encode` writes is a ValueError.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from handler.model.event import Delivery, Job
from handler.model.names import run_id, target_of
from handler.queues.pending import Work

VERSION = 1
MOST = 2047
"""Bytes of a message."""
_READ = 8 * MOST
_TRIGGERS = ("push", "replay", "tick", "drift", "oneoff")
_FLAGS = {"force": "force", "dry_run": "dryRun", "unpin": "unpin", "rollback": "rollback"}
_LONGEST = {"id": 128, "provider": 32, "ref": 200, "actor": 100, "received": 32}
"""Bytes of what tells of a delivery."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_APPROVE = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TARGET = re.compile(r"[a-z0-9]([-a-z0-9]{0,54}[a-z0-9])?")
_RUN = re.compile(r"[0-9a-f]{1,64}")
_LOOKS = 20


def encode(work: Work) -> str:
    """Write a request; of its deliveries the newest, as many as there is room for. Raises ValueError: what decides doesn't fit."""
    job = work.job
    written: dict[str, Any] = {"v": VERSION, "run": work.run, "target": job.target, "trigger": job.trigger}
    written |= {"commit": job.commit, "approve": job.approve, "looks": job.looks, "hint": _commit(job.hint)}
    written |= {key: True for name, key in _FLAGS.items() if getattr(job, name)} | ({} if job.prune else {"noPrune": True})
    written["actor"] = _cut(job.actor, _LONGEST["actor"])
    written = {key: value for key, value in written.items() if value}
    _work(written)  # what couldn't be read isn't sent
    deliveries: list[list[str]] = []
    for delivery in reversed(job.deliveries):
        row = [_cut(getattr(delivery, name), most) for name, most in _LONGEST.items()] + [_commit(delivery.hint)]
        if len(_json(written | {"deliveries": [row, *deliveries]})) > MOST:
            break
        deliveries.insert(0, row)
    return _json(written | ({"deliveries": deliveries} if deliveries else {}))


def decode(body: str) -> Work:
    """Read a request. When it was asked isn't in it: no look at the git host from before now serves it. Raises ValueError."""
    if len(body) > _READ:
        raise ValueError(f"a message of {len(body)} characters")
    try:
        written = json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(written, dict):
        raise ValueError("not an object")  # noqa: TRY004 - all that is wrong with a message is one class
    return _work(written)


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
    if type(written.get("v")) is not int or written["v"] != VERSION:
        raise ValueError(f"version {written.get('v')!r:.40}; this is {VERSION}")
    target, run, trigger = _text(written, "target", _TARGET), _text(written, "run"), _text(written, "trigger")
    if trigger not in _TRIGGERS:
        raise ValueError(f"unknown trigger {trigger[:40]!a}")
    if target_of(run) != target or not _RUN.fullmatch(run[len(target) + 1 :]):
        raise ValueError("the run isn't the target's")
    job = Job(
        target=target,
        trigger=trigger,
        hint=_text(written, "hint", _COMMIT, ""),
        commit=_text(written, "commit", _COMMIT, ""),
        force=_flag(written, "force"),
        dry_run=_flag(written, "dryRun"),
        prune=not _flag(written, "noPrune"),
        approve=_text(written, "approve", _APPROVE, ""),
        unpin=_flag(written, "unpin"),
        rollback=_flag(written, "rollback"),
        actor=_text(written, "actor", None, ""),
        deliveries=_deliveries(written.get("deliveries", [])),
        looks=_number(written.get("looks", 0)),
    )
    _refuse_together(job)
    return Work(job, (run,), (run,) if trigger in ("replay", "oneoff") else ())


def _refuse_together(job: Job) -> None:
    """Refuse what the door refuses (`web.replay`), too. Raises ValueError."""
    if job.commit and job.force:  # a host serves the commits of forks under the parent's address, too
        raise ValueError("a commit that is forced")
    if job.rollback and job.force:
        raise ValueError("a rollback that is forced")
    if bool(job.commit) + job.unpin + job.rollback > 1:
        raise ValueError("more than one of commit, unpin and rollback")


def _deliveries(rows: Any) -> tuple[Delivery, ...]:
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(_LONGEST) + 1 for row in rows):
        raise ValueError("deliveries aren't rows of texts")
    read = [[_plain(value, "a delivery") for value in row] for row in rows]
    named = [dict(zip((*_LONGEST, "hint"), row, strict=True)) for row in read]
    return tuple(Delivery(**row) for row in named)


def _text(written: dict[str, Any], key: str, form: re.Pattern[str] | None = None, default: str | None = None) -> str:
    if key not in written and default is not None:
        return default
    value = _plain(written.get(key), key)
    if form and not form.fullmatch(value):
        raise ValueError(f"{key} is {value[:40]!a}")
    return value


def _plain(value: Any, key: str) -> str:
    """Return a text that can be written anywhere."""
    if not isinstance(value, str) or len(value) > MOST or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{key} is no text")
    return value


def _flag(written: dict[str, Any], key: str) -> bool:
    value = written.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{key} is neither true nor false")  # noqa: TRY004 - all that is wrong with a message is one class
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LOOKS:
        raise ValueError("looks is no count")
    return value
