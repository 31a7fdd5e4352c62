"""What the pages of a target say of what the worker has found: all of it, and nothing that isn't so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.state.record import Suspend
from handler.state.record_values import RunOnce
from tests.unit.state.samples import NOON, sha
from tests.unit.web.page.page_door import GAP, GOING, LOGS, ORPHANS, RUN, Door, get
from tests.unit.web.page.records import facts_of

pytestmark = pytest.mark.slow


@pytest.fixture
def door() -> Door:
    return Door()


def test_the_oldest_run_of_a_history_says_what_it_declares_not_that_it_made_all(door: Door) -> None:
    page = get(door.browser("ADA"), f"/ui/targets/shop-prod/history?run={RUN.id}").text
    assert ("the history names no commit that was deployed before it" in page, "What it changed" in page, "created" in page) == (
        True,
        False,
        False,
    )


def test_the_bad_commit_is_marked_and_not_the_one_gone_back_to(door: Door) -> None:
    assert door.state
    back, bad = replace(RUN, id="r2", outcome="rolled-back"), replace(RUN, id="r1", outcome="failed", commit=sha("e"), digest="")
    door.state = replace(door.state, history=(back, bad, RUN))
    page = get(door.browser("ADA"), "/ui/targets/shop-prod/history").text
    first, second, _ = page.split("<article")[1:]
    assert ("gone back to" in first, "bad commit, gone back from" in second) == (True, True)
    assert "bad commit" not in first


def test_a_way_back_is_offered_where_there_is_the_act(door: Door) -> None:
    assert door.state
    door.state = replace(door.state, history=(RUN, replace(RUN, id="r0", commit=sha("b"))))
    client, path = door.browser("ADA"), "/ui/targets/shop-prod/history"
    assert "Roll back to" in get(client, path).text
    door.state = replace(door.state, suspend=Suspend("bob", at=NOON))
    assert "Roll back to" not in get(client, path).text, "it would end in 409"


def test_a_takeover_that_waits_names_the_command_that_goes_on_with_it(door: Door) -> None:
    assert door.state
    assert door.state.held
    held = replace(door.state.held, once=RunOnce(("flux", "helm")))
    door.state = replace(door.state, held=held)
    page = get(door.browser("ADA"), "/ui/targets/shop-prod").text
    assert f"<code>anneal adopt shop-prod --from flux --from helm --approve {held.id}</code>" in page


def gap_with(monkeypatch: pytest.MonkeyPatch, *objects: dict[str, Any], **more: Any) -> None:
    monkeypatch.setitem(GAP, "objects", [GOING | each for each in objects])
    for name, value in more.items():
        monkeypatch.setitem(GAP, name, value)


HOLD = {"id": "h2", "reasons": ["the renderer changed"], "recorded": False, "changes": {"count": 3, "items": []}}
DUE = {"group": "PreSync", "step": "migrate", "object": "Job/shop/migrate", "action": "run"}


def test_an_object_of_an_exclusive_namespace_is_shown_with_its_time_and_what_keeps_it(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"object": "ConfigMap/shop/a", "group": "", "uid": "u", "place": "", "fate": "expires", "held": False, "reason": "isn't declared"}
    one |= {"since": NOON, "sibling": "", "terminating": "", "finalizers": [], "until": NOON, "stays": "declare it in git"}
    beside = one | {"object": "ConfigMap/shop/b", "fate": "undeclared", "since": "", "until": "", "stays": ""}
    monkeypatch.setitem(ORPHANS, "orphans", [one, beside])
    page = get(door.browser("ADA"), "/ui/targets/shop-prod/orphans").text
    first, second = page.split("ConfigMap/shop/")[1:]
    assert ("expires" in first, NOON in first.partition("Why")[0]) == (True, True)
    assert "to keep it: <code>declare it in git</code>" in first
    assert ("undeclared" in second, "to keep it" in second) == (True, False)


def test_a_gap_shows_what_the_command_line_says_of_it(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = {"object": "Pod/shop/a", "state": "equal", "action": "unchanged", "deletes": False, "terminating": NOON}
    held = {"object": "ConfigMap/shop/b", "state": "differs", "action": "update", "deletes": False, "held": True}
    gap_with(monkeypatch, stuck | {"finalizers": ["acme.io/wait"]}, held, hold=HOLD, due=[DUE])
    page = get(door.browser("ADA"), "/ui/targets/shop-prod/gap").text
    assert ("A guard holds 3 changes, once a run has planned that" in page, "the renderer changed" in page) == (True, True)
    assert "Job/shop/migrate" in page
    first, second = page.split('id="object-')[1:]
    assert ("being deleted since" in first, "finalizers: acme.io/wait" in first, "once approved" in first) == (True, True, False)
    assert ("being deleted since" in second, "once approved" in second) == (False, True)


def test_a_guard_that_holds_for_another_reason_than_orphans_says_how_much(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ORPHANS, "hold", HOLD | {"recorded": True})
    assert "A guard holds 3 changes:" in get(door.browser("ADA"), "/ui/targets/shop-prod/orphans").text


def test_an_object_that_isnt_in_the_gap_says_nothing_of_the_others(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    gap_with(monkeypatch)
    client, path = door.browser("ADA"), "/ui/targets/shop-prod/gap"
    assert "Neither git nor the cluster has such an object" in get(client, f"{path}?object=Pod/shop/none").text
    assert "Git declares nothing here" in get(client, path).text
    cut = {"state": "differs", "action": "update", "deletes": False, "fields": [], "omitted": 250}
    gap_with(monkeypatch, cut)
    assert "anneal gap shop-prod -v" in get(client, f"{path}?object=Service/shop/old").text


def test_a_confirmation_names_what_is_made_and_opens_no_empty_table(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    field = {"path": "data.key", "state": "differs", "declared": "1", "live": "2", "manager": "", "why": ""}
    made = {"object": "ConfigMap/shop/new", "state": "missing", "action": "create", "deletes": False}
    more = {"object": "ConfigMap/shop/big", "state": "differs", "action": "update", "deletes": False, "fields": [field]}
    gap_with(monkeypatch, made, more | {"omitted": 300, "counts": {"equal": 0, "differs": 301, "undeclared": 0, "itself": 0}})
    page = get(door.browser("ADA"), "/ui/targets/shop-prod/replay").text
    assert ("ConfigMap/shop/new" in page, page.count("<table"), page.count("<details")) == (True, 1, 1)
    assert ("data.key" in page, "and 300 fields more that may change" in page, "anneal gap shop-prod -v" in page) == (True, True, True)


def test_a_log_that_couldnt_be_read_isnt_said_to_be_empty(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    unread = LOGS | {"container": "", "lines": [], "notes": ["Pod/shop/a can't be read with the target's identity"]}
    monkeypatch.setattr("tests.unit.web.page.page_door.LOGS", unread)
    page = get(door.browser("ADA"), "/ui/targets/shop-prod/logs?object=Pod/shop/a").text
    assert ("pod a</p>" in page, "can&#39;t be read with the target&#39;s identity" in page) == (True, True)
    assert "written nothing" not in page


def test_another_container_is_asked_for_and_the_page_leads_to_each(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    two = [{"name": "main", "previous": True}, {"name": "proxy", "previous": False}]
    monkeypatch.setattr("tests.unit.web.page.page_door.LOGS", LOGS | {"containers": two, "previous": True})
    page = get(door.browser("ADA"), "/ui/targets/shop-prod/logs?object=Pod/shop/a&container=main&previous=1").text
    about = {"name": "shop-prod", "object": "Pod/shop/a", "container": "main", "previous": True}
    assert {"question": "logs", **about} in door.asked
    assert '?object=Pod%2Fshop%2Fa&amp;container=main&amp;previous=1" aria-current="true">main, before its last restart</a>' in page
    assert 'container=proxy">proxy</a>' in page


def test_a_record_that_cant_be_read_isnt_said_to_be_none(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    none = facts_of(None)
    trouble = {"code": "cluster-unavailable", "message": "it is away"}
    monkeypatch.setattr("tests.unit.web.page.page_door.facts_of", lambda _state: none | {"trouble": trouble})
    page = get(door.browser("ADA"), "/ui/targets/shop-prod").text
    assert ("it is away" in page, "it never ran" in page) == (True, False)
    monkeypatch.setattr("tests.unit.web.page.page_door.facts_of", lambda _state: none)
    page = get(door.browser("ADA"), "/ui/targets/shop-prod").text
    assert ("It has no record." in page, "it never ran" in page) == (True, False)
    monkeypatch.setattr("tests.unit.web.page.page_door.facts_of", lambda _state: none | {"members": 0})
    assert "it never ran" in get(door.browser("ADA"), "/ui/targets/shop-prod").text
    monkeypatch.setattr("tests.unit.web.page.page_door.facts_of", lambda _state: none | {"members": 12})
    page = get(door.browser("ADA"), "/ui/targets/shop-prod").text
    assert ("Its record is missing, 12 objects found" in page, "<code>anneal apply shop-prod</code>" in page) == (True, True)
