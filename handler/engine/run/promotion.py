"""Which commit a target is on that follows what other targets have proven, and what the next one waits for.

    the newest commit that all of them have proven         `promotion_claims`
    is on the target's own branch                          else the next one is looked at
    isn't older than what the target has recorded          else it stays where it is
    what an open attempt brings                            goes on until something newer is proven, or one has gone back from it since
    none                                                   it stays on what it has recorded

Law: other records are claims. No commit is deployed by them alone: the git host says that it is on the branch, `verify` that it is signed.
Other clusters are read, never written; one that doesn't answer keeps the target where it is.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from handler.engine.run.errors import RequestRefused
from handler.engine.run.other_records import NoOtherRecords, OtherRecord, OtherRecords
from handler.engine.run.promotion_claims import Awaited, Claims, soonest
from handler.model.advice import advice
from handler.model.errors import AnnealError, AuthorError, RefNotFound
from handler.model.refs import is_commit_id
from handler.model.tree import OUTSIDE, ReadSet, Tree, printable
from handler.state.record import State
from handler.state.record_format import seconds_of

_MOST_REFUSED = 5  # commits that records claim, and that the git host doesn't have or show on the branch: no further one is asked for


def nowhere(_head: str, _commit: str) -> bool:
    """Know of no commit that leads to another."""
    return False


def _no_tree(sha: str) -> Tree:
    raise RefNotFound.of(f"commit {sha}", "no git host is known")


@dataclass(frozen=True, slots=True)
class Promotion:
    """The commit that a target should be on; empty: none yet. `awaited`: by `next`, the newest that it isn't on; `due`: see `Awaited`."""

    commit: str = ""
    next: str = ""
    awaited: tuple[Awaited, ...] = ()
    due: float = 0.0

    def __str__(self) -> str:
        return "; ".join(each.advised for each in self.awaited)


NO_PROMOTION = Promotion()


@dataclass(frozen=True, slots=True)
class Promoters:
    """The targets that promote to one, and the ways to judge what they say.

    `soak`: seconds; `repositories`: keys of the follower's; `head`: of its branch, by an answer of that monotonic second or later
    (infinity: of now); `reaches`: whether a commit leads to another; `tree`: of a commit. They raise AnnealError.
    `elsewhere`: see `Claims`.
    """

    target: str = ""
    names: tuple[str, ...] = ()
    soak: float = 0.0
    repositories: frozenset[str] = frozenset()
    records: OtherRecords = field(default_factory=NoOtherRecords)
    head: Callable[[float], str] = lambda _since: ""
    reaches: Callable[[str, str], bool] = nowhere
    tree: Callable[[str], Tree] = _no_tree
    elsewhere: bool = False

    def choose(self, known: State, now: float, since: float = math.inf) -> Promotion:
        """Return the commit to be on. `known`: the target's own record. Raises AnnealError: the git host doesn't answer."""
        claims, unread = self._claims(now)
        chosen = self._newest_proven(claims, known, since) if not unread else Promotion(known.commit, awaited=unread)
        attempt = known.attempt
        if attempt is None or claims.went_back(attempt.commit, seconds_of(attempt.since)):
            return chosen
        goes_on = chosen.commit in ("", known.commit) or self._is_before(chosen.commit, attempt.commit)
        return replace(chosen, commit=attempt.commit) if goes_on else chosen

    def claimed(self, known: State, now: float) -> tuple[Awaited, ...]:
        """Return what the newest commit of other records waits for, without a question to the git host; nothing: the target is on it."""
        claims, unread = self._claims(now)
        newest, said = next(iter(claims.candidates()), ""), unread or claims.went_back(known.commit)
        if said or newest in ("", known.commit):
            return said or (() if newest else claims.unproven())
        seen = f"{newest[:12]} is proven, and the next run asks the git host whether it may follow"
        return claims.awaited(newest, lambda _: "") or (Awaited("", seen, advice("anneal apply {}", self.target)),)

    def by_hand(self, known: State, commit: str, now: float, *, force: bool) -> str:
        """Return the commit that a person promotes: this one, or what the first target has. Raises RequestRefused, AnnealError."""
        claims, unread = self._claims(now)
        if unread and not (force and commit):
            fix = advice("without it: anneal promote {} --commit {} --force", self.target, commit or "SHA")
            raise RequestRefused.of(f"target {self.target}", str(unread[0]), fix=fix)
        first = claims.records[0].state if claims.records else None
        commit = _whole(commit, claims.candidates()) or (first.commit if first else "")
        if not commit:
            raise RequestRefused.of(f"target {self.names[0]}", "has recorded nothing to promote", fix=claims.look(self.names[0]))
        if not is_commit_id(commit):
            seen = f"is no full commit id of 40 hex digits, and begins none on record: {', '.join(self.names)}"
            raise RequestRefused.of(f"commit {printable(commit)}", seen, fix=claims.look(self.names[0], "history"))
        objections = () if force else claims.objection(commit, partial(self._reads_of, set(), commit))
        if objections:
            fix = advice("all the same: anneal promote {} --commit {} --force", self.target, commit)
            raise RequestRefused.of(f"target {self.target}", "; ".join(map(str, objections)), fix=fix)
        if elsewhere := self._objection(known, commit, math.inf, force=force):
            raise RequestRefused.of(f"target {self.target}", elsewhere.why, fix=elsewhere.fix)
        return commit

    def _claims(self, now: float) -> tuple[Claims, tuple[Awaited, ...]]:
        read = [self._read(name) for name in self.names]
        records = [each for each in read if isinstance(each, OtherRecord)]
        unread = [each for each in read if isinstance(each, Awaited)]
        if not read:
            unread.append(Awaited("", "no target that it follows is configured here", advice("anneal check {}", self.target)))
        return Claims(records, self.repositories, self.soak, now, self.target, self.elsewhere), tuple(unread)

    def _read(self, name: str) -> OtherRecord | Awaited:
        try:
            return self.records.read(name)
        except AnnealError as error:
            return Awaited(name, f"its record can't be read: {error}", advice("anneal check {}", self.target))

    def _newest_proven(self, claims: Claims, known: State, since: float) -> Promotion:
        first, refused, back = Promotion(known.commit), set[str](), claims.went_back(known.commit)
        for number, commit in enumerate(claims.newer(known.commit)):
            if len(refused) == _MOST_REFUSED:
                break
            if back and number < _MOST_REFUSED and self._is_before(commit, known.commit):
                continue
            awaited = claims.awaited(commit, partial(self._reads_of, refused, commit))
            objection = None if awaited else self._objection(known, commit, since)
            if not first.next and any(each.by_hand for each in awaited):
                awaited = self._by_hand_too(known, commit, since) or awaited
            if not awaited and objection is None:
                return Promotion(commit) if not first.next else replace(first, commit=commit)
            if objection and objection.final and claims.in_order:  # older than what is recorded, and so are all that follow
                first = first if first.next else replace(first, awaited=(objection,))
                break
            refused |= {commit} if objection else set()
            if not first.next:
                found = awaited or ((objection,) if objection else ())
                first = Promotion(known.commit, commit, found, soonest(found))
        nothing = claims.unproven() if not (known.commit and claims.candidates()) else ()
        return replace(first, awaited=(*back, *(first.awaited or nothing)))

    def _objection(self, known: State, commit: str, since: float, *, force: bool = False) -> Awaited | None:
        """Return why a commit isn't deployed here, however proven it is; `final`: it is behind what is recorded."""
        try:
            if not self._is_on_branch(commit, since):
                return Awaited("", f"{commit[:12]} is not on the branch of {self.target}", "merge it into that branch")
        except AuthorError as error:
            return Awaited("", f"{commit[:12]} can't be deployed: {error}", "push something newer that can")
        if known.commit in ("", commit):
            return None
        try:
            older = self.reaches(known.commit, commit)
        except AuthorError as error:  # what is recorded is gone from the host; by force, a person says that this one is newer
            forced = advice("deploy it all the same: anneal promote {} --commit {} --force", self.target, commit)
            seen = f"whether {commit[:12]} is newer than {known.commit[:12]} isn't known: {error}"
            return None if force else Awaited("", seen, forced)
        seen = f"{commit[:12]} is older than what it has recorded, {known.commit[:12]}"
        return Awaited("", seen, advice("to go back: anneal rollback {} --to {}", self.target, commit), final=True) if older else None

    def _by_hand_too(self, known: State, commit: str, since: float) -> tuple[Awaited, ...]:
        """Return why a commit that waits would be refused by hand, too; that the git host doesn't answer is no failure of a wait."""
        with contextlib.suppress(AnnealError):
            objection = self._objection(known, commit, since)
            return (objection,) if objection else ()
        return ()

    def _is_on_branch(self, commit: str, since: float) -> bool:
        """Whether the branch leads to a commit; an older answer of the host may not show it yet."""
        return self.reaches(self.head(since), commit) or (since != math.inf and self.reaches(self.head(math.inf), commit))

    def _is_before(self, commit: str, later: str) -> bool:
        """Whether a commit is an older one than what an attempt brings; one that the host no longer has is brought no further."""
        try:
            return commit != later and self.reaches(later, commit)
        except AuthorError:
            return False

    def _reads_of(self, refused: set[str], commit: str, state: State) -> str:
        if not state.reads_paths or any(path.startswith(OUTSIDE) for path in state.reads_paths):
            return ""  # what isn't git's is another target's to ask
        try:
            return ReadSet(tuple((path, "") for path in state.reads_paths)).on(self.tree(commit)).digest()
        except AuthorError:
            refused.add(commit)
            return ""


def _whole(commit: str, known: Sequence[str]) -> str:
    """Return the one of the known commits that begins so; a whole id, and what begins none or several, is left as it is."""
    found = [each for each in known if commit and each.startswith(commit)]
    return found[0] if len(found) == 1 else commit
