"""What is WATCHed of a cluster, and what is known of it: scopes come and go with what is declared, and with rights."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.errors import AccessDenied, ClusterUnavailable
from handler.model.names import Identity
from handler.worker.health_watch import scopes as module
from handler.worker.health_watch.scopes import FollowedScope, Scopes
from tests.unit.worker.health_watch.watched_objects import API, declaring, watched
from tests.unit.worker.health_watch.watched_scopes import adjusted

WEB = Identity("", "Service", "shop", "web")
DENIED = AccessDenied.of("list deployments", "is forbidden")
NOW = 1000.0


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was begun: `watch` or `list`."""
    names: list[str] = []
    monkeypatch.setattr(module, "started", lambda *_: names.append("watch"))
    monkeypatch.setattr(module, "look", lambda *_: names.append("list"))
    return names


def only(scopes: Scopes) -> FollowedScope:
    (found,) = scopes.followed.values()
    return found


def test_a_target_that_declares_no_kind_to_watch_any_more_is_in_no_trouble() -> None:
    scopes, shop = Scopes(), watched("shop", API)
    adjusted(scopes, shop)
    assert not scopes.are_whole("shop")
    shop.read(declaring(), "2")
    adjusted(scopes)
    assert not scopes.followed
    assert scopes.trouble("shop", NOW) is None
    assert not scopes.are_whole("shop")


def test_without_watch_and_list_rights_health_is_unknown(begun: list[str]) -> None:
    scopes = Scopes()
    adjusted(scopes, watched("shop", API))
    scopes.go_on(NOW, 60.0)
    each = only(scopes)
    scopes.stands(each.scope)
    scopes.ended(each.scope, DENIED)
    assert scopes.trouble("shop", float("inf")) is None, "a LIST may still be allowed"
    scopes.go_on(NOW + 61, 60.0)
    scopes.ended(each.scope, DENIED)
    assert begun == ["watch", "list"]
    assert scopes.trouble("shop", float("inf")) is DENIED


def test_records_that_cannot_be_read_vouch_for_nothing() -> None:
    scopes = Scopes()
    adjusted(scopes, watched("shop", API))
    scope = only(scopes).scope
    assert not scopes.stood(scope, 0.0), "not LISTed yet"
    scopes.stands(scope)
    assert scopes.stood(scope, 0.0)
    scopes.ended(scope, ClusterUnavailable.of("list", "no answer"))
    assert scopes.stood(scope, 0.0)
    assert not scopes.stood(scope, float("inf"))


def test_a_watch_that_no_target_needs_any_more_ends() -> None:
    scopes, shop = Scopes(), watched("shop", API, WEB)
    adjusted(scopes, shop)
    scope = next(each.scope for key, each in scopes.followed.items() if key[2] == "Deployment")
    assert scopes.account(scope) == ""
    shop.read(declaring(WEB), "2")
    assert adjusted(scopes, shop) == [("", "apps/v1", "Deployment", "")]
    assert scopes.account(scope) is None


def test_what_went_while_a_scope_was_listed_anew_is_gone() -> None:
    scopes, shop = Scopes(), watched("shop", API, WEB)
    adjusted(scopes, shop)
    for each in scopes.followed.values():
        scopes.stands(each.scope)
    scopes.restart(list(scopes.followed), {("", API), ("", WEB), ("deployer", API)})
    assert sorted(each.scope.expected() for each in scopes.followed.values()) == [{API}, {WEB}]


def test_a_kind_whose_group_doesnt_answer_isnt_gone() -> None:
    cup = Identity("example.com", "Cup", "shop", "tea")
    scopes, shop = Scopes(), watched("shop", cup)
    adjusted(scopes, shop, stale="example.com")
    assert "example.com doesn't answer" in str(scopes.trouble("shop", NOW))
    adjusted(scopes, shop)
    assert scopes.trouble("shop", NOW) is None, "its group answers, and doesn't serve it any more"


def test_a_list_from_before_a_run_shows_nothing_of_what_that_wrote(begun: list[str]) -> None:
    scopes, shop = Scopes(), watched("shop", API)
    adjusted(scopes, shop)
    only(scopes).denied = True
    scopes.go_on(NOW, 60.0)
    scopes.stands(only(scopes).scope)
    assert begun == ["list"]
    assert (scopes.show("shop", NOW - 1), scopes.show("shop", NOW + 1)) == (True, False)
    scopes.go_on(NOW + 60.0, 60.0)
    assert not scopes.show("shop", NOW + 1), "it is under way"
    scopes.stands(only(scopes).scope)
    assert scopes.show("shop", NOW + 1)


def test_a_watch_shows_what_is_written_while_it_lasts(begun: list[str]) -> None:
    scopes, shop = Scopes(), watched("shop", API)
    adjusted(scopes, shop)
    scopes.go_on(NOW, 60.0)
    scopes.stands(only(scopes).scope)
    assert begun == ["watch"]
    assert scopes.show("shop", NOW + 1000)
    scopes.ended(only(scopes).scope, ClusterUnavailable.of("watch deployments", "no answer"))
    assert not scopes.show("shop", NOW + 1000)


def test_a_scope_for_which_there_is_no_thread_is_begun_later(monkeypatch: pytest.MonkeyPatch, begun: list[str]) -> None:
    scopes, shop = Scopes(), watched("shop", API)
    adjusted(scopes, shop)

    def none(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as short:
        short.setattr(module, "started", none)
        with pytest.raises(RuntimeError):
            scopes.go_on(NOW, 60.0)
    scopes.go_on(NOW + 60.0, 60.0)
    assert begun == ["watch"]
