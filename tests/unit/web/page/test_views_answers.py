"""Pages of what can't be read now: each says so, shows what was seen last, and decides nothing."""

from __future__ import annotations

import re

import pytest

from handler.web.page.acts import ACTS
from tests.fakes.page_visits import URL
from tests.unit.state.samples import NOON
from tests.unit.web.page.page_door import Door, get, post

pytestmark = pytest.mark.slow


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.mark.parametrize(
    ("code", "status"),
    [("cluster-unavailable", 502), ("request-refused", 404), ("internal", 502)],
)
def test_what_the_worker_couldnt_find_out_is_a_page_too(door: Door, code: str, status: int) -> None:
    door.trouble["gap"] = {"code": code, "message": "<b>it is away</b>"}
    page = get(door.browser("ADA"), "/ui/targets/shop-prod/gap")
    assert (page.status_code, "&lt;b&gt;it is away&lt;/b&gt;" in page.text) == (status, True)


@pytest.mark.parametrize(("question", "name"), [("tree", "inventory"), ("events", "events")])
def test_a_cluster_that_cant_be_looked_at_leaves_the_page_and_says_why(door: Door, question: str, name: str) -> None:
    door.trouble[question] = {"code": "cluster-unavailable", "message": "it is away"}
    page = get(door.browser("ADA"), f"/ui/targets/shop-prod/{name}")
    assert (page.status_code, "it is away" in page.text) == (200, True), "an open page asks again and again: that is no error of it"
    assert not re.search("Nothing of this target lives|0 objects", page.text)


def test_a_worker_that_is_away_is_said_to_be(door: Door) -> None:
    door.away = True
    page = get(door.browser("ADA"), "/")
    assert (page.status_code, "doesn&#39;t answer" in page.text) == (503, True)


@pytest.mark.parametrize("away", [True, False])
def test_what_came_to_this_process_is_shown_where_records_cant_be_read(door: Door, away: bool) -> None:
    client = door.browser("ADA")
    assert get(client, "/ui/deliveries").text.count("<article") == 0
    assert client.post("/webhooks/github", json={}, base_url=URL).status_code == 401
    door.away, door.trouble["deliveries"] = away, {"code": "internal", "message": "doesn't answer"}
    page = get(client, "/ui/deliveries")
    assert (page.status_code, page.text.count("<article"), "doesn&#39;t answer" in page.text) == (200, 1, True)


@pytest.mark.parametrize("path", ["/", "/ui/targets/shop-prod"])
def test_a_page_that_couldnt_read_something_takes_all_that_the_feed_knows(door: Door, path: str) -> None:
    door.unread = {"trouble": {"code": "cluster-unavailable", "message": "it doesn't answer"}}
    assert 'data-streams="0"' in get(door.browser("ADA"), path).text


@pytest.mark.parametrize("tab", ["history", "orphans", "gap", "inventory", "events"])
def test_a_tab_says_that_the_record_couldnt_be_read(door: Door, tab: str) -> None:
    assert "it doesn&#39;t answer" not in get(door.browser("ADA"), f"/ui/targets/shop-prod/{tab}").text
    door.unread = {"trouble": {"code": "cluster-unavailable", "message": "it doesn't answer"}, "state": None, "seen": ""}
    page = get(door.browser("ADA"), f"/ui/targets/shop-prod/{tab}").text
    assert "it doesn&#39;t answer; nothing is known of its record" in page
    assert "No run has left an entry" not in page
    door.unread = {"trouble": door.unread["trouble"], "seen": NOON}
    assert "it doesn&#39;t answer; what is said of its record was seen" in get(door.browser("ADA"), f"/ui/targets/shop-prod/{tab}").text


def test_a_run_of_a_record_that_cant_be_read_isnt_said_to_be_gone(door: Door) -> None:
    client = door.browser("ADA")
    assert get(client, "/ui/targets/shop-prod/history?run=shop-prod.0").status_code == 404
    door.unread = {"trouble": {"code": "cluster-unavailable", "message": "it doesn't answer"}, "state": None}
    page = get(client, "/ui/targets/shop-prod/history?run=shop-prod.0")
    assert (page.status_code, "it doesn&#39;t answer" in page.text) == (502, True)


@pytest.mark.parametrize("act", ACTS)
def test_what_was_seen_before_decides_nothing(door: Door, act: str) -> None:
    client, path = door.browser("ADA"), f"/ui/targets/shop-prod/{act}"
    form = {"csrf": re.findall(r'name="csrf" value="(\w+)"', get(client, "/").text)[0]}
    door.unread = {"trouble": {"code": "cluster-unavailable", "message": "it doesn't answer"}}
    for page in (get(client, path), post(client, path, form)):
        assert (page.status_code, "it doesn&#39;t answer" in page.text, "nothing was done" in page.text) == (502, True, True)
    assert not door.queue.jobs
    assert {"question": "target", "name": "shop-prod", "patient": True} in door.asked
    assert act not in {each["question"] for each in door.asked}


def test_an_act_whose_plan_isnt_answered_says_that_nothing_was_done(door: Door) -> None:
    client, path = door.browser("ADA"), "/ui/targets/shop-prod/replay"
    form = {"csrf": re.findall(r'name="csrf" value="(\w+)"', get(client, "/").text)[0]}
    door.trouble["gap"] = {"code": "cluster-unavailable", "message": "it doesn't answer"}
    page = post(client, path, form)
    assert (page.status_code, "it doesn&#39;t answer" in page.text, "nothing was done" in page.text) == (502, True, True)
    assert not door.queue.jobs


def test_an_act_that_was_asked_for_isnt_said_to_have_failed_where_its_end_cant_be_read(door: Door) -> None:
    client = door.browser("ADA")
    door.trouble["run"] = {"code": "cluster-unavailable", "message": "it doesn't answer"}
    page = get(client, "/ui/targets/shop-prod?asked=replay&run=shop-prod.0123")
    assert (page.status_code, "Run now: was asked for" in page.text) == (200, True)
    assert get(client, "/ui/targets/shop-prod/run?id=shop-prod.0123").status_code == 502


@pytest.mark.parametrize("suspended", [True, False])
def test_a_pause_is_said_to_be_done_by_what_is_read_now_alone(door: Door, suspended: bool) -> None:
    client = door.browser("ADA")
    door.unread = {"suspended": suspended}
    assert ("Suspend: done." in get(client, "/ui/targets/shop-prod?asked=suspend").text) is suspended
    door.unread |= {"trouble": {"code": "cluster-unavailable", "message": "it doesn't answer"}, "seen": NOON}
    page = get(client, "/ui/targets/shop-prod?asked=suspend").text
    assert ("Suspend: done." in page, "Suspend: was asked for" in page) == (False, True)


def test_deliveries_that_cant_be_read_arent_said_to_be_none(door: Door) -> None:
    client = door.browser("ADA")
    assert '<p class="empty">None.</p>' in get(client, "/ui/deliveries").text
    door.trouble["deliveries"] = {"code": "internal", "message": "doesn't answer"}
    assert '<p class="empty">None.</p>' not in get(client, "/ui/deliveries").text


def test_a_filtered_overview_takes_all_that_the_feed_knows_where_any_target_is_unread(door: Door) -> None:
    door.unread = {"trouble": {"code": "cluster-unavailable", "message": "it doesn't answer"}}
    assert 'data-streams="0"' in get(door.browser("ADA"), "/?state=healthy").text
