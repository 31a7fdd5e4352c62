"""The change that an apply makes to one live object: by the server's dry-run, and by managedFields where no dry-run can show it.

Law: the plan shows what the server has judged; nothing here can write. What others wrote and git lacks goes with the apply; a refusal is
deferred, a recreate, a migration to another API version, or a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from handler.cluster.api import Api
from handler.cluster.write import DryRunner, forgetting
from handler.engine.planner.server_answers import NO_DRY_RUN, Finding, MissingDependencies, is_by_schema, placed
from handler.engine.planner.stand_in import mistakes_of, scratch
from handler.model.api_groups import is_certainly_custom
from handler.model.errors import AccessDenied, ApiRefused, Moved, Problem
from handler.model.manifest import at, canonical, items_at
from handler.model.names import Resource, uid_and_version
from handler.model.plan import Action, Change
from handler.plan import crd_schema, live_only_fields
from handler.plan import missing_objects as missing
from handler.plan.admission import CRD, Desired
from handler.plan.judge import Judge
from handler.plan.managed_fields import Fields, keyed, managed_fields, migrated, our_entry, recorded_in, without
from handler.plan.quoted_refusal import told_refusal
from handler.plan.takeover import Takeover, dropped, foreseen

_ASKED = 50  # how many fields of one refused object the server is asked about, one by one
_ROLE = ApiRefused(Problem("", "cannot change roleRef"), status=422, reason="Invalid")
"""The server's words (rbac/validation) for a binding that names another role."""
_NULL = '"null"'  # what a schema says of a null (apiextensions: `must be of type object: "null"`)
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LiveDryRun:
    """Asks about one live object. `judged`: it, with our marks where a sibling gives it up; `adopted`: it isn't ours yet.

    `settled`: what another writes between the read of `live` and the server's answer is taken for the apply's.
    """

    api: Api
    judge: Judge
    missing: MissingDependencies
    is_served: Callable[[Resource], bool]
    item: Desired
    live: Object
    judged: Object
    adopted: bool
    settled: bool = False

    def findings(self) -> list[Finding]:
        """Return what becomes of the object: a change, mistakes, or rights that are missing. Raises Moved: another wrote it meanwhile."""
        if self._is_forgotten():
            return self._moved()
        try:
            wanted = DryRunner(self.api).apply(self.item.resource, self._body)
        except (ApiRefused, AccessDenied) as error:
            return self._refused(error, self._taken_over(self.live))
        version = wanted["metadata"].get("resourceVersion")  # a dry-run answers with that of what it was merged with
        if not self.settled and version and version != uid_and_version(self.live)[1]:
            raise Moved.of(str(self.item.identity), "was written since it was read")
        live = self.live if managed_fields(self.live) else _noted(self.live, wanted)
        return replace(self, live=live)._judged(wanted)  # noqa: SLF001 - of itself

    def _judged(self, wanted: Object) -> list[Finding]:
        declared = (our_entry(wanted) or {}).get("fieldsV1") or {}
        taken = self._taken_over(self.live, declared)
        if taken and (taken.goes or self._is_mixed):
            return self._merged(taken.after(wanted), taken, [self.judge.present(self.item, self.live, wanted)])
        return [self.judge.present(self.item, self.live, wanted, taken)]

    @property
    def _body(self) -> Object:
        return self.item.manifest.body()

    def _taken_over(self, live: Object, declared: Fields | None = None) -> Takeover | None:
        """Return what of others becomes ours. `declared`: what our apply would own, in the server's words."""
        body = keyed(self._body, declared or {})
        return self.missing.comparison.taken_over(self.item.identity, body, live, adopted=self.adopted)

    def _merged(self, merged: Object, taken: Takeover, instead: list[Finding]) -> list[Finding]:
        """Judge what an object is without what others wrote. `instead`: what comes of it where that can't be released."""
        try:
            entries = taken.entries if self._is_mixed else None
            becomes = DryRunner(self.api).become(self.item.resource, self.live, merged, entries)
        except (ApiRefused, AccessDenied) as error:
            if NO_DRY_RUN in error.words:
                return [self._undryable(taken)]
            if isinstance(error, AccessDenied):
                return placed(error, self.item)
            final = self._final(error)
            if any(isinstance(each, Change) for each in final):
                return final  # it may be made anew
            kept = self._kept(taken)
            words = "; ".join(problem.message for problem in told_refusal(error, self.item.manifest).problems)
            return [live_only_fields.refusal(self.item, self.live, kept, words)] if kept else final
        return self._released(merged, becomes, taken) or instead

    def _released(self, merged: Object, becomes: Object, taken: Takeover) -> list[Finding]:
        """Judge what the server makes of an object without what others wrote; nothing: with that it would forget who wrote the rest."""
        if not managed_fields(becomes):
            self.missing.notes.append(live_only_fields.unreleased(self.item, self.live, taken.goes))
            return []
        nulled = live_only_fields.nulled(self.live, merged, becomes, taken.goes) if is_certainly_custom(self.item.identity.group) else []
        if nulled:
            return [live_only_fields.left_null(self.item, self.live, nulled)]
        return [self.judge.present(self.item, self.live, becomes, taken)]

    def _kept(self, taken: Takeover) -> list[tuple[live_only_fields.Path, Fields]]:
        """Return which of the fields that would go the server won't let go, each asked about alone; none where it refuses any write."""
        found = []
        try:
            DryRunner(self.api).become(self.item.resource, self.live, self.live)
        except (ApiRefused, AccessDenied):
            return []
        for path, only, less in islice(live_only_fields.each_without(self.live, taken.goes), _ASKED):
            try:
                DryRunner(self.api).become(self.item.resource, self.live, less)
            except (ApiRefused, AccessDenied):
                found.append((path, only))
        return found

    def _refused(self, error: ApiRefused | AccessDenied, taken: Takeover | None) -> list[Finding]:
        """Take a refused dry-run of the apply: try it in its stage, without what may go, made anew where allowed; else a mistake."""
        item, live = self.item, self.live
        if NO_DRY_RUN in error.words:
            return [self._undryable(taken)]
        if isinstance(error, AccessDenied):
            return placed(error, item)
        if error.reason == ApiRefused.UNCONVERTED and self._is_mixed:
            return self._moved()
        deferred = self._deferred(error)
        if deferred or not (taken and taken.goes and error.status == 422):
            return deferred or self._last(error, taken) or self._final(error)
        return self._merged(foreseen(live, self._body, taken), taken, self._final(error))

    def _last(self, error: ApiRefused, taken: Takeover | None) -> list[Finding]:
        """Return why the object can't lose the last of what another manager keeps; nothing: that isn't why it is refused."""
        goes = dropped(self.live, self._body, taken) if _NULL in error.words else {}
        gone = live_only_fields.nulled(self.live, without(self.live, goes), {}, goes)
        return [live_only_fields.left_null(self.item, self.live, gone)] if gone else []

    def _deferred(self, error: ApiRefused) -> list[Finding]:
        """Return what comes of an object that is refused only until something else is written; nothing: it is refused for itself."""
        item = self.item
        need = self.missing.first(item, error)
        if need:
            if _is_rebound(self._body, self.live):
                return [self.judge.refused(item, self.judged, _ROLE)]
            instead = missing.without(item)
            mistakes = mistakes_of(self.api, item, scratch(instead, item) if instead else None)
            return [*mistakes, self.later(f"{need} comes first")]
        changing = self.missing.changing_crd(item)
        if changing and is_by_schema(error):
            return [
                *crd_schema.check(item, self.missing.comparison.desired[changing].manifest),
                self.later("its CRD changes first"),
            ]
        return []

    def _final(self, error: ApiRefused) -> list[Finding]:
        names = self.missing.named(self.item, error)
        return self.missing.mistakes(self.item, error) if names else [self.judge.refused(self.item, self.judged, error)]

    # --- where no dry-run says it
    def _undryable(self, taken: Takeover | None) -> Change:
        self.missing.notes.append(f"{self.item.identity}: an admission webhook does not support dry run; it is applied as declared")
        return self._unchecked(taken)

    def later(self, reason: str) -> Change:
        """Return the change of an object that can't be judged yet."""
        return replace(self._unchecked(self._taken_over(self.live)), action=Action.UPDATE, reason=reason, deferred=True)

    def _unchecked(self, taken: Takeover | None) -> Change:
        return self.judge.present(self.item, self.live, foreseen(self.live, self._body, taken), taken)

    # --- other API versions
    @property
    def _is_mixed(self) -> bool:
        """Whether a field is recorded in another version of the kind than git's: the server must convert it, and may fail."""
        return migrated(self.live, self.item.resource.api_version) != managed_fields(self.live)

    def _is_forgotten(self) -> bool:
        """Whether our fields are recorded in a version that the kind hasn't any more, or not once this run has changed its CRD."""
        recorded = recorded_in(self.live)
        if recorded in ("", self.item.resource.api_version):
            return False
        version = recorded.rpartition("/")[2]
        crd = next((self.missing.comparison.desired[need] for need in self.item.needs if need.group_kind == CRD), None)
        if crd is None:
            return not self.is_served(replace(self.item.resource, version=version))
        return version not in [at(each, "name") for each in items_at(crd.manifest.body(), "spec", "versions")]

    def _moved(self) -> list[Finding]:
        """Judge an object whose managedFields move to git's API version before it can be applied."""
        entries = migrated(self.live, self.item.resource.api_version)
        live = {**self.live, "metadata": {**self.live["metadata"], "managedFields": entries}}
        taken = self._taken_over(live)
        entries = list(taken.entries) if taken else entries
        try:
            found = DryRunner(self.api).become(self.item.resource, self.live, foreseen(live, self._body, taken), entries)
        except AccessDenied as error:
            return placed(error, self.item)
        except ApiRefused as error:
            return self._final(error)
        if not managed_fields(found):
            return [forgetting(str(self.item.identity), [recorded_in(self.live)])]
        change = self.judge.present(self.item, live, found, taken)
        reason = change.reason or f"was applied in {recorded_in(self.live)}"
        return [replace(change, action=Action.UPDATE, reason=reason, managed_fields=canonical(entries))]


def _noted(live: Object, wanted: Object) -> Object:
    """Return a live object without managedFields with the entry that the server makes at its first apply (`before-first-apply`)."""
    entries = [entry for entry in managed_fields(wanted) if entry is not our_entry(wanted)]
    return {**live, "metadata": {**live["metadata"], "managedFields": entries}}


def _is_rebound(desired: Object, live: Object) -> bool:
    """Whether a binding names another role than it does live: the server says that this can't be once it finds that role."""
    return any(at(desired, "roleRef", key) != at(live, "roleRef", key) for key in ("kind", "name"))
