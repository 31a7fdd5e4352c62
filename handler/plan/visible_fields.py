"""What a reader of a pull request sees of one object: what the merge changes of it by git alone, and where live differs already. Pure.

    what git declares otherwise after the merge    always a change, whatever lives; of live only what may be shown
    what it declares alike before and after        a change where live differs from it, as it does without the pull request

Law: nothing that is shown depends on whether a value which the merge brings equals what lives, unless that may be shown. A live value may
be shown where git declares its field before the merge, openly, our own apply wrote it, and nothing leaves it to others: no rule of the
target, no annotation, in git before or after, or live, and no mode of the object. A key that only lives is unseen, too, and so is what
names an element. What is to be is shown as git declares it: what a server or an apply makes of it may hold what lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from handler.model.field_masking import MASKED, shown
from handler.model.manifest import Manifest
from handler.model.names import FIELD_MANAGER, GroupKind, Identity
from handler.model.plan import Action, Change, FieldChange
from handler.plan.declared_fields import DeclaredFields
from handler.plan.diff import ORDER, differences, field_changes, tellable, text_of
from handler.plan.managed_fields import Step, at_path, child, equal, is_applied, owners

Pair = tuple[Manifest | None, Manifest | None]
"""What git declares of an object before and after; None: nothing."""
UNSEEN = "(not shown)"
Object = dict[str, Any]
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class MergedObject:
    """A live object and what git declares of it, each without what it leaves to others. `now`: before the merge, `then`: after it.

    `left`: what of `now` it leaves to others after the merge is taken out of that, too.
    """

    kind: GroupKind
    live: Object
    now: Object
    then: Object
    left: Object

    def changes(self) -> Iterator[FieldChange]:
        """Yield what git declares otherwise after the merge; not what lives so already, where that may be seen."""
        for path, was, becomes in differences(self.left, self.then):
            text = text_of(tellable(self.kind, path))
            told, seen = shown(self.kind, text, was), self._is_seen(path, was)
            if seen and equal(at_path(self.live, path), becomes):
                continue
            lives = shown(self.kind, text, at_path(self.live, path)) if seen else MASKED if told == MASKED else UNSEEN
            yield FieldChange(text, shown(self.kind, text, becomes), lives, FIELD_MANAGER if seen else "")

    def drift(self, wanted: Object, *, settled: bool) -> Iterator[FieldChange]:
        """Yield where live differs from what an apply of `now` makes of it (`wanted`), and git declares the same there after the merge.

        A key that only lives goes also where the merge declares it: that it is the same one would tell. `settled`: what only the server
        writes otherwise, as `2` for a cpu of `2000m`, is left out. Such is a field that git declares, as it was deployed, and that has had
        no other writer since: one would own it
        (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management).
        """
        before, then = (DeclaredFields(self.kind, each) for each in (self.now, self.then))
        for path, lives, becomes in differences(self.live, wanted):
            text = text_of(tellable(self.kind, path))
            was, after = before.at(text), then.at(text)
            is_settled = settled and {name for name, _ in owners(self.live, path)} == {FIELD_MANAGER}
            if was.value is not None and (is_settled or not equal(was.value, after.value)):
                continue
            told, declared = shown(self.kind, text, lives), was.text or UNSEEN if becomes is not None else ""
            if MASKED not in told + declared:
                yield FieldChange(_told(text, was.known), declared, told if not told or self._is_seen(path, was.value) else UNSEEN)

    def held(self, body: Object) -> Object:
        """Return a body in which each value that the merge brings, and that may not be compared with live, is what our apply left there.

        A server that is asked about it then says nothing of such a value: neither that it is refused, nor that it isn't.
        """
        for path, was, _ in differences(self.left, self.then):
            if path[-1] is not ORDER and not self._is_seen(path, was):
                listed = next((end for end, step in enumerate(path) if isinstance(step, int)), len(path))
                ends = (end for end in range(1, listed + 1) if end == listed or not is_applied(self.live, path[:end]))
                whole = path[: next(ends)]
                _put(body, whole, at_path(self.live, whole) if is_applied(self.live, whole) else None)
        return body

    def shows(self, path: str) -> bool:
        """Whether a field is one that the merge changes, and whose live value may be seen."""
        found = (each for each, was, _ in differences(self.left, self.then) if self._is_seen(each, was))
        return path in map(text_of, found)

    def _is_seen(self, path: Path, was: Any) -> bool:
        """Whether the live value at a path may be seen beside what git declares of it before the merge."""
        if was is None or not is_applied(self.live, path):
            return False
        lives, told = at_path(self.live, path), shown(self.kind, text_of(tellable(self.kind, path)), was)
        may_hold_others = isinstance(was, dict | list) or isinstance(lives, dict | list) or any(isinstance(step, int) for step in path)
        return MASKED not in told and (not may_hold_others or equal(lives, was))


def _put(body: Object, path: Path, value: Any) -> None:
    """Write a value at a path of a body; None: leave out what is there."""
    parent, step = at_path(body, path[:-1]), path[-1]
    if isinstance(parent, list):
        gone = child(parent, step)
        parent[:] = [value if item is gone else item for item in parent if item is not gone or value is not None]
        return
    fields = parent if isinstance(parent, dict) else {}
    fields.pop(step, None)
    fields |= {} if value is None else {step: value}


def by_git(change: Change, now: Manifest | None, then: Manifest | None, others: Pair | None = None) -> Change:
    """Return a change as git alone says it, whatever lives: for where values that aren't in git may have decided what does.

    What lives may hold a value where placeholders show none: by a comparison, a default, a commit before this one. So would it tell that it
    equals what is declared. `now`, `then`: as for `visible`; `others`: the same with other placeholders, by which something else may
    differ. Deletions, and what is left alone, stay as they are.
    """
    if then is None or change.action not in (Action.CREATE, Action.UPDATE, Action.UNCHANGED):
        return change
    if now is None:
        return replace(change, action=Action.CREATE, fields=())
    pairs = [(one.body(), other.body()) for one, other in (others or (None, None), (now, then)) if one and other]
    fields = {each.path: each for pair in pairs for each in field_changes(change.identity.group_kind, *pair)}
    return Change(Action.UPDATE if fields else Action.UNCHANGED, change.identity, fields=tuple(fields.values()), manifest=change.manifest)


def by_name(change: Change) -> Change:
    """Return a change that says of a live object only that it is declared: where nothing is known of what git declares before."""
    if change.action not in (Action.UPDATE, Action.UNCHANGED):
        return replace(change, fields=())
    return Change(Action.UPDATE, change.identity, manifest=change.manifest)


def _told(path: str, known: int) -> str:
    """Return a path as far as git declares it."""
    rest = path[known:]
    if not rest or rest == ORDER:
        return path
    return f"{path[:known]}[{UNSEEN}]" if rest.startswith("[") else f"{path[:known]}.{UNSEEN}".removeprefix(".")


def changed(now: Mapping[Identity, Manifest], then: Mapping[Identity, Manifest]) -> frozenset[Identity]:
    """Return the objects that git declares otherwise, no longer, or anew."""
    return frozenset(identity for identity in now.keys() | then.keys() if _raw(now.get(identity)) != _raw(then.get(identity)))


def _raw(manifest: Manifest | None) -> bytes:
    return manifest.raw if manifest else b""
