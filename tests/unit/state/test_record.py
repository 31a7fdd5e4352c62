"""What the record says by itself: how long a pause holds, and where members can be."""

from __future__ import annotations

from handler.model.names import GroupKind, Identity
from handler.state.record import Orphan, Suspend, bounded
from handler.state.record_format import seconds_of
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
