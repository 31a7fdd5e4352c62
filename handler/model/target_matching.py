"""Which targets an event concerns, and why: a pure decision. URLs are only ever compared: the configuration says what is fetched."""

from __future__ import annotations

import bisect
import difflib
import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handler.model.advice import advice
from handler.model.event import PULL_REQUEST, Decision, Event, RefChange
from handler.model.pull_request import pull_request_name

HEADS, TAGS = "refs/heads/", "refs/tags/"
OFF = "plans on pull requests are off: write `feedback: {pullRequests: true}` in its repository"
NAMED = 5  # refs that a reason names; of more it says the number
NEAR = 10  # repositories on either side, in either order, that an unknown one is compared with: comparing is slow
REMEMBERED, SENDERS = 1000, 1000
"""Unknown repositories whose nearest one is kept; sets of targets with an index of their own, one a secret."""
_CODECOMMIT = re.compile(r"codecommit::([a-z0-9-]+)://(?:[^@/]*@)?([^/]+?)/?")


@dataclass(frozen=True, slots=True)
class WatchedRevision:
    """A target as matching sees it. `urls`: its repository and aliases; `suspended`: by the configuration.

    `ref`: the full ref it follows; `semver`: the range of versions whose highest tag it follows; neither: a fixed commit.
    `promoters`: the targets whose proven commits it follows, whatever is pushed.
    `needs_process`: it has instances, and functions can't follow them. `plans_pull_requests`: it is planned on those to its branch;
    `has_instances`: it is none itself, and planned on none.
    """

    name: str
    urls: tuple[str, ...]
    ref: str = ""
    semver: str = ""
    suspended: bool = False
    promoters: tuple[str, ...] = ()
    needs_process: bool = False
    plans_pull_requests: bool = False
    has_instances: bool = False


def repository_key(url: str) -> str:
    """Return `host/path` of a repository URL, host in lower case, without scheme, user, port, `.git` and end slashes. Empty: no URL.

    Reads scp's `git@host:path` and `codecommit::region://name`, too. Hosts with a path for each protocol need `aliases`.
    """
    if found := _CODECOMMIT.fullmatch(url):
        url = codecommit_url(*found.groups())
    if "://" in url:
        authority, _, path = url.partition("://")[2].partition("/")
    else:
        authority, _, path = url.partition(":")
    host = authority.rpartition("@")[2].lower()
    host = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host}/{path}" if host and path else ""


def codecommit_url(region: str, name: str) -> str:
    """Return the https URL of a repository of AWS CodeCommit (https://docs.aws.amazon.com/codecommit/latest/userguide/regions.html)."""
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://git-codecommit.{region}.{domain}/v1/repos/{name}"


class TargetIndex:
    """Targets by the repositories they name: what a delivery costs doesn't grow with their number. Safe to share between threads."""

    def __init__(self, targets: Iterable[WatchedRevision]) -> None:
        self.targets = tuple(targets)
        self._places: dict[str, list[int]] = {}
        for place, target in enumerate(self.targets):
            for key in _keys(target.urls):
                self._places.setdefault(key, []).append(place)
        self._by_start = sorted(self._places)
        self._by_end = sorted(key[::-1] for key in self._places)
        self.only = functools.lru_cache(maxsize=SENDERS)(self._only)

    def concerned(self, event: Event) -> tuple[WatchedRevision, ...]:
        """Return the targets of the event's repository, in their own order."""
        places = {place for key in _keys(event.urls) for place in self._places.get(key, ())}
        return tuple(self.targets[place] for place in sorted(places))

    def _only(self, names: frozenset[str]) -> TargetIndex:
        return TargetIndex(target for target in self.targets if target.name in names)

    def near(self, key: str) -> list[str]:
        """Return the repositories of which one may be meant: those that begin or end most like this one."""
        ends = (found[::-1] for found in _around(self._by_end, key[::-1]))
        return sorted({*_around(self._by_start, key), *ends})


def _around(ordered: Sequence[str], key: str) -> Sequence[str]:
    at = bisect.bisect(ordered, key)
    return ordered[max(at - NEAR, 0) : at + NEAR]


def decide(event: Event, targets: TargetIndex) -> tuple[Decision, ...]:
    """Decide for every target of the event's repository among those that the sender may know of; one decision without a target: none."""
    if event.kind == "other":
        return (Decision("", matched=False, reason=event.note),)
    concerned = targets.concerned(event)
    if not concerned:
        return (Decision("", matched=False, reason=_unknown(event, targets)),)
    if event.kind == PULL_REQUEST:
        return _of_pull_request(event, concerned)
    return tuple(_decision(event, target) for target in concerned)


def _of_pull_request(event: Event, concerned: Sequence[WatchedRevision]) -> tuple[Decision, ...]:
    """Decide once for the whole repository, in the name of its first target that plans: which base it has, the host is asked."""
    first = next((target for target in concerned if target.plans_pull_requests and not target.suspended), None)
    if first is None:
        return tuple(Decision(target.name, matched=False, reason=_unplanned(target)) for target in concerned)
    reason = f"the plan of pull request {event.pull_request} is made for the targets that follow its base branch"
    return (Decision(pull_request_name(first.name, event.pull_request), matched=True, reason=reason),)


def _unplanned(target: WatchedRevision) -> str:
    """Return why a target is planned on no pull request."""
    if target.suspended:
        return "suspended in the configuration"
    if target.has_instances:
        return "its instances are planned on no pull request"
    return OFF if target.ref.startswith(HEADS) else "it follows no branch, and plans on pull requests are of those that follow their base"


def _decision(event: Event, target: WatchedRevision) -> Decision:
    if event.kind == "ping":
        return Decision(target.name, matched=False, reason="a ping: the webhook is set up, nothing was pushed")
    if reason := _untouched(target):
        return Decision(target.name, matched=False, reason=reason)
    if target.semver:
        return _of_range(event, target)
    return _of_ref(event, target)


def _untouched(target: WatchedRevision) -> str:
    """Return why no push concerns a target of its repository; empty: one may."""
    if target.suspended:
        return "suspended in the configuration"
    if target.needs_process:
        return advice("functions follow no objects: `anneal serve` or `anneal run --trigger resource {}` runs its instances", target.name)
    if target.promoters:
        return f"it follows what {', '.join(target.promoters)} {'has' if len(target.promoters) == 1 else 'have'} proven"
    return "" if target.semver or target.ref else "it follows a fixed commit"


def _of_ref(event: Event, target: WatchedRevision) -> Decision:
    own = [change for change in event.changes if change.ref == target.ref]
    kept = [change for change in own if not change.deleted]
    if kept:
        return Decision(target.name, matched=True, reason=f"it follows {target.ref}", change=kept[-1])
    if own:
        return Decision(target.name, matched=False, reason=f"{target.ref} was deleted: nothing is deployed, nothing is pruned")
    if event.more:
        return Decision(target.name, matched=True, reason=f"it follows {target.ref}, which may be among more refs than are listed")
    return Decision(target.name, matched=False, reason=f"it follows {target.ref}, and {_said(event.changes)}")


def _of_range(event: Event, target: WatchedRevision) -> Decision:
    """Any tag may make another one the highest, a deleted one too: which it is now, only the host knows."""
    follows = f"it follows the highest tag in {target.semver}"
    tags = [change for change in event.changes if change.ref.startswith(TAGS)]
    if not tags and not event.more:
        return Decision(target.name, matched=False, reason=f"{follows}, and {_said(event.changes)}")
    said = _said(tags) if tags else "a tag may be among more refs than are listed"
    last = ([change for change in tags if not change.deleted] or tags or [RefChange("")])[-1]
    return Decision(target.name, matched=True, reason=f"{follows}, and {said}: the host is asked which is the highest now", change=last)


def _said(changes: Sequence[RefChange]) -> str:
    pushed = [change.ref for change in changes if not change.deleted]
    deleted = [change.ref for change in changes if change.deleted]
    return " and ".join(_names(refs, verb) for refs, verb in ((pushed, "pushed"), (deleted, "deleted")) if refs) or "no ref was pushed"


def _names(refs: Sequence[str], verb: str) -> str:
    named = ", ".join(refs[:NAMED]) + (f" and {len(refs) - NAMED} more" if len(refs) > NAMED else "")
    return f"{named} {'was' if len(refs) == 1 else 'were'} {verb}"


def _unknown(event: Event, targets: TargetIndex) -> str:
    if not event.urls:
        return f"a {event.kind} that names no repository"
    named = min((key[:300] for key in _keys(event.urls)), default="it names")
    return f"no target follows the repository {named}{_hint(targets, named)}"


@functools.lru_cache(maxsize=REMEMBERED)
def _hint(targets: TargetIndex, named: str) -> str:
    near = difflib.get_close_matches(named, targets.near(named), n=1, cutoff=0.5)
    return f"; the nearest one is {near[0]}" if near else ""


def _keys(urls: Sequence[str]) -> set[str]:
    return {key for url in urls if (key := repository_key(url))}
