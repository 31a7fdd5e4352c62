"""What the record says by itself: how long a pause holds, and where members can be."""

from __future__ import annotations

import pytest

from handler.model.names import GroupKind, Identity
from handler.state.lease_record import LeaseRecord
from handler.state.record import Orphan, Pin, Run, RunStatus, Suspend, bounded
from handler.state.record_format import read_record, seconds_of, write_record
from tests.unit.state.samples import NOON, blank

WEB, ROLE = Identity("", "ConfigMap", "shop", "web"), Identity("rbac.authorization.k8s.io", "ClusterRole", "", "reader")


def test_a_pause_holds_until_its_time() -> None:
    pause, now = Suspend("ann", until=NOON), seconds_of(NOON)
    found = [blank(suspend=pause).suspension(now + seconds) for seconds in (-1, 0, 1)]
    assert found == [pause, None, None]
    forever = Suspend("ann")
    assert (blank(suspend=forever).suspension(now), blank().suspension(now)) == (forever, None)


def test_members_are_looked_for_where_declared_objects_and_orphans_are() -> None:
    state = bounded(blank(declared=(ROLE,), orphans=(Orphan("u", WEB, NOON),), kinds=frozenset({GroupKind("", "Secret")})))
    assert state.kinds == {GroupKind("", "Secret"), WEB.group_kind, ROLE.group_kind}
    assert state.namespaces == {"shop"}
    assert bounded(state) is state


def test_an_undeclared_object_of_an_exclusive_namespace_is_no_place_of_members() -> None:
    found = blank(orphans=(Orphan("u", WEB, NOON, unmarked=True, until=NOON),))
    assert bounded(found) is found


EVIL = "x\n    kubectl delete ns prod\u2028\u202e"


@pytest.mark.parametrize("form", [Run("r", "push", "failed", NOON, author=EVIL, subject=EVIL), Pin("a" * 40, by=EVIL, reason=EVIL)])
def test_a_line_of_a_record_is_one_whoever_has_written_it(form: Run | Pin) -> None:
    written = write_record(form)
    forged = {key: EVIL if isinstance(text, str) and "kubectl" in text else text for key, text in written.items()}
    assert read_record(type(form), forged) == read_record(type(form), written)
    assert all(text.isprintable() for text in written.values() if isinstance(text, str))


def test_a_message_of_a_record_keeps_its_lines_and_a_flood_is_refused() -> None:
    assert read_record(RunStatus, {"message": EVIL}).message == "x\n    kubectl delete ns prod\\u2028\\u202e"
    with pytest.raises(ValueError, match="author: expected printable text of at most 300 characters"):
        read_record(Run, {**write_record(Run("r", "push", "failed", NOON)), "author": "a" * 60_000})


def test_the_holder_of_a_lease_is_one_line() -> None:
    held = LeaseRecord.of({"metadata": {"uid": "u"}, "spec": {"holderIdentity": EVIL * 1_000}})
    assert (held.holder.isprintable(), len(held.holder)) == (True, 300)
