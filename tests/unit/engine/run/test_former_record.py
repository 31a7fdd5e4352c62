"""The record that a target takes over: what of it counts, until when it is read again, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from handler.engine.run.errors import TargetRenamed
from handler.engine.run.former_record import FormerRecord, former_marks, ignored, joined, refuse_renamed
from handler.model.errors import TargetMoved
from handler.model.names import GroupKind, applyset_id
from handler.state.lease import LeaseLock
from handler.state.record import Approval, Attempt, Pin, State, Suspend
from handler.state.record_values import RecordName
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import NAMESPACE, NOON, TOKEN, TOOLING, blank, sha

REPOSITORY = "https://git.example.com/acme/shop.git"
OLD = RecordName("store", NAMESPACE)
ATTEMPT = Attempt(sha("c"), "d" * 64, "e" * 64, TOKEN, NOON)
KIND = GroupKind("", "ConfigMap")


@dataclass
class Places:
    """Records in memory, as a target of the name `shop` finds them."""

    objects: FakeObjects = field(default_factory=FakeObjects)
    namespace: str = NAMESPACE
    configured: Sequence[RecordName] = (OLD,)
    others: Sequence[RecordName] = ()
    targets: Sequence[str] = ()

    def is_target(self, place: RecordName) -> bool:
        return place.name in self.targets

    def at(self, place: RecordName) -> FormerRecord:
        store = StateStore(self.objects, place.namespace, place.name, "default", TOOLING)
        return FormerRecord(place, store, LeaseLock(self.objects, place.namespace, f"anneal-{place.name}", "one"))

    def elsewhere(self, state: State) -> Sequence[RecordName]:
        assert state.target == "shop"
        return self.others

    def put(self, **parts: object) -> State:
        known = {"target": "store", "commit": sha(), "reads": "1" * 64, "settings": "2" * 64, "kinds": frozenset({KIND})}
        state = blank(**(known | parts))
        self.at(OLD).store.create(state)
        return state


ELSEWHERE = ({"repository": "https://git.example.com/acme/bank.git"}, {"cluster_uid": "u-2"})
NAMESAKE = RecordName("shop", "gitops")


def fresh() -> State:
    return replace(blank(), repository="")


def join(places: Places, known: State, *, recorded: bool = False) -> tuple[State, FormerRecord | None]:
    return joined(places, known, REPOSITORY, 1.8e9, recorded=recorded)


def test_the_first_state_is_a_copy_without_what_vouches_for_anything() -> None:
    places = Places()
    approval = Approval("a1", "1" * 64, "2" * 64, (), "ada", NOON)
    old = places.put(approval=approval, pin=Pin(sha("b")), suspend=Suspend("ada"), attempt=ATTEMPT, digest="3" * 64)
    state, former = join(places, fresh())
    assert former
    assert (state.target, state.former and replace(state.former, at="")) == ("shop", OLD)
    assert (state.reads, state.settings, state.approval, state.held) == ("", "", None, None)
    kept = ("commit", "pin", "suspend", "attempt", "digest", "kinds", "repository")
    assert [getattr(state, name) for name in kept] == [getattr(old, name) for name in kept]


def test_until_it_is_claimed_what_the_old_name_does_counts_and_what_persons_said_here_stands() -> None:
    places = Places()
    places.put()
    state, former = join(places, fresh())
    assert former
    mine = replace(state, pin=Pin(sha("b")), suspend=Suspend("grace"), attempt=ATTEMPT)
    more = GroupKind("", "Secret")
    former.store.update(lambda now: replace(now, commit=sha("f"), kinds=now.kinds | {more}, pin=None))
    state, _ = join(places, mine, recorded=True)
    assert (state.commit, state.kinds, state.attempt) == (sha("f"), frozenset({KIND, more}), ATTEMPT)
    assert (state.pin, state.suspend) == (mine.pin, mine.suspend)


def test_once_it_is_claimed_only_the_own_record_counts() -> None:
    places = Places()
    places.put()
    state, former = join(places, fresh())
    assert former
    former.store.update(lambda now: replace(now, commit=sha("f"), renamed_to=RecordName("shop", NAMESPACE)))
    again, former = join(places, replace(state, commit=sha("e")), recorded=True)
    assert former
    assert (again.commit, former.is_claimed_by("shop", NAMESPACE), former.is_claimed_by("shop", "gitops")) == (sha("e"), True, False)


@pytest.mark.parametrize("victim", [{}, {"repository": "https://git.example.com/acme/bank.git"}], ids=["namesake", "stranger"])
@pytest.mark.parametrize("is_target", [False, True], ids=["unknown", "configured"])
def test_two_records_that_name_each_other_take_nothing_over_without_a_line(is_target: bool, victim: dict[str, str]) -> None:
    """Both keys may be forged: `former` in the one, `renamedTo` in the other."""
    places = Places(configured=(), targets=("store",) if is_target else ())
    places.put(renamed_to=RecordName("shop", NAMESPACE), **victim)
    with pytest.raises(TargetRenamed, match="nothing of that is taken, moved or deleted") as refused:
        join(places, replace(blank(commit=sha()), former=OLD), recorded=True)
    fix = refused.value.problems[0].fix
    assert ("renamedFrom: store" in fix, "kubectl patch ConfigMap/anneal-shop" in fix) == (not is_target, True)


def test_a_takeover_that_the_configuration_names_never_takes_another_repositorys_record() -> None:
    places = Places()
    places.put(renamed_to=RecordName("shop", NAMESPACE), repository="https://git.example.com/acme/bank.git")
    with pytest.raises(TargetMoved, match="repository was https"):
        join(places, replace(blank(commit=sha()), former=OLD), recorded=True)


def test_what_is_left_of_a_takeover_whose_old_record_is_gone_changes_nothing() -> None:
    known = blank(commit=sha())
    assert join(Places(configured=()), replace(known, former=OLD), recorded=True) == (known, None)


def test_a_target_that_has_deployed_something_asks_for_no_other_record() -> None:
    places = Places()
    places.put()
    known = blank(commit=sha())
    assert join(places, known, recorded=True) == (known, None)
    assert joined(None, fresh(), REPOSITORY, 0.0, recorded=False) == (fresh(), None)


def test_what_another_has_taken_over_is_refused() -> None:
    places = Places()
    places.put(renamed_to=RecordName("bank", NAMESPACE))
    with pytest.raises(TargetRenamed, match="target bank has taken over"):
        join(places, fresh())


@pytest.mark.parametrize("parts", ELSEWHERE)
def test_the_record_of_another_repository_or_cluster_is_refused(parts: dict[str, str]) -> None:
    places = Places()
    places.put(**parts)
    with pytest.raises(TargetMoved, match="call it store again, `anneal retarget store`"):
        join(places, fresh())


@pytest.mark.parametrize("parts", [{"commit": sha()}, {"suspend": Suspend("ada")}], ids=["deployed", "only paused"])
def test_a_record_of_another_installation_is_none_of_ours_and_the_line_is_named(parts: dict[str, object]) -> None:
    places = Places()
    places.put(installation="second", **({"commit": "", "reads": "", "settings": "", "kinds": frozenset()} | parts))
    assert join(places, fresh()) == (fresh(), None)
    said = "`renamedFrom: store` has no effect: ConfigMap/anneal-system/anneal-store is of installation second"
    assert [ignored(places, known).startswith(said) for known in (fresh(), blank(commit=sha()))] == [True, True]


@pytest.mark.parametrize("parts", [*ELSEWHERE, {"installation": "second"}])
def test_a_namesake_that_is_not_ours_hides_no_right_record(parts: dict[str, str]) -> None:
    places = Places(configured=(NAMESAKE, OLD))
    places.at(NAMESAKE).store.create(blank(**({"commit": sha()} | parts)))
    right = places.put()
    state, former = join(places, fresh())
    assert former
    assert (former.place, state.commit, state.kinds) == (OLD, right.commit, right.kinds)


def test_of_a_namesake_of_another_installation_nothing_is_said() -> None:
    places = Places(configured=(NAMESAKE,))
    places.at(NAMESAKE).store.create(blank(commit=sha(), installation="second"))
    assert join(places, fresh()) == (fresh(), None)
    assert [ignored(places, known) for known in (fresh(), blank(commit=sha()))] == ["", ""]


@pytest.mark.parametrize("parts", ELSEWHERE)
def test_to_retire_what_is_of_another_repository_or_cluster_is_not_advised(parts: dict[str, str]) -> None:
    places = Places()
    places.put(**parts)
    assert ignored(places, blank(commit=sha())) == ""


def test_a_takeover_of_what_another_installation_has_by_now_is_refused_until_the_line_is_gone() -> None:
    places = Places()
    places.put()
    state, former = join(places, fresh())
    assert former
    former.store.update(lambda now: replace(now, installation="second"))
    with pytest.raises(TargetMoved, match="remove `renamedFrom: store`: then it begins anew"):
        join(places, state, recorded=True)
    places.configured = ()
    state, former = join(places, state, recorded=True)
    assert (state.commit, state.former, former) == ("", None, None)


def test_a_record_in_another_namespace_is_named_with_the_line() -> None:
    places = Places(configured=(), others=(RecordName("shop", "gitops"),))
    with pytest.raises(TargetMoved, match="stateNamespaceFrom: gitops"):
        join(places, fresh())
    assert join(places, fresh(), recorded=True) == (fresh(), None)


def test_where_the_old_record_is_lost_its_members_are_looked_for() -> None:
    state, former = join(Places(), fresh())
    assert former
    assert (state.former and state.former.name, former.is_claimed_by("shop", NAMESPACE)) == ("store", True)
    found = former_marks(state.former)
    assert found
    assert (found.target, found.applyset) == ("store", applyset_id("anneal-store", NAMESPACE))
    assert former_marks(None) is None


def test_a_moved_record_says_where_it_is() -> None:
    with pytest.raises(TargetRenamed, match="moved to the state namespace gitops"):
        refuse_renamed(blank(renamed_to=RecordName("shop", "gitops")))
    refuse_renamed(blank())
    refuse_renamed(None)


def test_the_old_name_is_refused_with_a_way_back_that_its_own_configuration_can_go() -> None:
    with pytest.raises(TargetRenamed) as refused:
        refuse_renamed(blank(renamed_to=RecordName("store", "gitops")))
    (problem,) = refused.value.problems
    assert "write `renamedFrom: store` on target shop" in problem.fix
    assert "`stateNamespaceFrom: gitops`" in problem.fix
    assert "`anneal -c THEIR_FILE apply store`" in problem.fix  # `store` is no target of this configuration


BEFORE = RecordName("bank", NAMESPACE)


@pytest.mark.parametrize(
    ("begun", "way_out"),
    [
        (True, "call it store again, let `anneal apply store` end that, and change it then"),
        (False, "write `renamedFrom: bank` on target shop in its place"),
    ],
)
def test_a_record_that_takes_another_one_over_is_not_taken_over_itself(begun: bool, way_out: str) -> None:
    places = Places()
    places.put(former=BEFORE)
    places.at(BEFORE).store.create(blank(target="bank", commit=sha(), renamed_to=OLD if begun else None))
    with pytest.raises(TargetRenamed, match=re.escape(way_out)):
        join(places, fresh())


def test_a_takeover_whose_record_begins_another_one_meanwhile_is_refused() -> None:
    places = Places()
    places.put()
    state, former = join(places, fresh())
    assert former
    former.store.update(lambda now: replace(now, former=BEFORE))
    with pytest.raises(TargetRenamed, match="hasn't ended its own takeover"):  # that record is gone: it has begun
        join(places, state, recorded=True)


def test_a_record_in_a_third_namespace_leads_back_to_the_first() -> None:
    places = Places(configured=(RecordName("shop", "gitops"),))
    places.at(RecordName("shop", "gitops")).store.create(blank(commit=sha(), former=RecordName("shop", "first")))
    places.at(RecordName("shop", "first")).store.create(blank(commit=sha()))
    with pytest.raises(TargetRenamed, match="write `stateNamespaceFrom: first` in its place"):
        join(places, fresh())


def test_a_pause_of_the_old_name_holds_until_it_is_claimed() -> None:
    places = Places()
    places.put()
    state, former = join(places, fresh())
    assert former
    former.store.update(lambda now: replace(now, suspend=Suspend("grace")))
    over = Suspend("ada", until="2001-01-01T00:00:00Z")
    assert [join(places, replace(state, suspend=own), recorded=True)[0].suspend for own in (None, over)] == [Suspend("grace")] * 2


def test_a_line_that_comes_too_late_is_named_with_what_helps() -> None:
    places, own = Places(), blank(commit=sha())
    assert ignored(places, own) == ""
    places.put()
    said = ignored(places, own)
    assert "`renamedFrom: store` has no effect: this target has deployed under its own record" in said
    assert "remove the line, then `anneal retire store --keep` lets go of that, and `anneal apply shop`" in said
    assert [ignored(places, each) for each in (fresh(), replace(own, former=OLD))] == ["", ""]
    assert ignored(None, own) == ""


def test_a_namespace_that_comes_too_late_is_named_with_its_flag() -> None:
    place = RecordName("shop", "gitops")
    places = Places(configured=(place,))
    places.at(place).store.create(blank(commit=sha()))
    said = ignored(places, blank(commit=sha()))
    assert "`stateNamespaceFrom: gitops` has no effect" in said
    assert "; `anneal retire shop --keep --state-namespace gitops` lets go of that" in said


@pytest.mark.parametrize("renamed_to", [RecordName("shop", NAMESPACE), RecordName("bank", NAMESPACE)])
def test_what_the_record_of_another_installation_was_renamed_to_counts_for_nothing(renamed_to: RecordName) -> None:
    places = Places()
    places.put(installation="second", renamed_to=renamed_to)
    with pytest.raises(TargetMoved, match="which installation second has by now"):
        join(places, replace(blank(commit=sha()), former=OLD), recorded=True)
