"""Which targets an event concerns, and why: a pure decision that can be explained without being carried out.

URLs are only ever compared. What is fetched, and from where, stands in the operator's configuration alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from handler.model.event import Decision, Event


@dataclass(frozen=True, slots=True)
class Watched:
    """A target as matching sees it. `urls`: its repository and aliases; `ref`: the full ref it follows, empty: a fixed commit."""

    name: str
    urls: tuple[str, ...]
    ref: str


def repository_key(url: str) -> str:
    """Return `host/path` of a repository URL: without scheme, user, port, `.git`, slashes at the end, case of the host. Empty: no URL.

    Understands `https://`, `ssh://`, `git://` and the `git@host:path` of scp.
    """
    if "://" in url:
        authority, _, path = url.partition("://")[2].partition("/")
    else:
        authority, _, path = url.partition(":")
    host = authority.rpartition("@")[2].lower()
    host = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host}/{path}" if host and path else ""


def concerns(event: Event, target: Watched) -> bool:
    """Say whether the event names the target's repository."""
    return bool(_keys(event.urls) & _keys(target.urls))


def decide(event: Event, targets: Sequence[Watched]) -> tuple[Decision, ...]:
    """Decide for every target of the event's repository; for an unknown repository, one decision without a target says so."""
    if event.kind == "other":
        return (Decision("", matched=False, reason=event.note),)
    concerned = [target for target in targets if concerns(event, target)]
    if not concerned:
        return (Decision("", matched=False, reason=_unknown(event, targets)),)
    return tuple(_decision(event, target) for target in concerned)


def _decision(event: Event, target: Watched) -> Decision:
    if event.kind == "ping":
        return Decision(target.name, matched=False, reason="a ping: the webhook is set up, nothing was pushed")
    if not target.ref:
        return Decision(target.name, matched=False, reason="it follows a fixed commit")
    if event.ref != target.ref:
        return Decision(target.name, matched=False, reason=f"it follows {target.ref}, and {event.ref} was pushed")
    if event.deleted:
        return Decision(target.name, matched=False, reason=f"{event.ref} was deleted: nothing is deployed, nothing is pruned")
    return Decision(target.name, matched=True, reason=f"it follows {target.ref}")


def _unknown(event: Event, targets: Sequence[Watched]) -> str:
    if not event.urls:
        return f"a {event.kind} that names no repository"
    named = sorted(key[:300] for key in _keys(event.urls)) or ["it names"]
    known = sorted({key for target in targets for key in _keys(target.urls)})
    near = difflib.get_close_matches(named[0], known, n=1, cutoff=0.5)
    hint = f"; the nearest one is {near[0]}" if near else ""
    return f"no target follows the repository {named[0]}{hint}"


def _keys(urls: Sequence[str]) -> set[str]:
    return {key for url in urls if (key := repository_key(url))}
