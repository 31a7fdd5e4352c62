"""The page's routes in the whole application: who sees which, what an act asks for, and what stands around every answer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from handler import __version__
from handler.model.event import Job
from handler.state.record import Suspend
from handler.web.page.acts import ACTS
from handler.web.page.rendering import asset
from handler.web.page.target_pages import TARGET_PAGES
from tests.fakes.page_visits import URL
from tests.unit.rows import each_row
from tests.unit.state.samples import NOON, sha
from tests.unit.web.page.page_door import GAP, LOST, OWN, RUN, Door, fields, get, post

pytestmark = pytest.mark.slow


@pytest.fixture
def door() -> Door:
    return Door()


_BESIDE = ("run", "logs")  # their addresses name more
PATHS = ["/", "/ui/deliveries", *(f"/ui/targets/shop-prod/{name}".rstrip("/") for name in TARGET_PAGES if name not in _BESIDE)]
ACT_PATHS = [f"/ui/targets/shop-prod/{name}" for name in ACTS if name != "resume"]


@each_row("path", [*PATHS, *ACT_PATHS])
def test_every_page_is_shown_to_an_operator_within_its_frame(door: Door, path: str) -> None:
    page = get(door.browser("ADA"), path)
    assert page.status_code == 200
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert (page.headers["Cache-Control"], page.headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.text.startswith("<!doctype html>")


@each_row("path", [*PATHS, *ACT_PATHS, "/ui/live"])
def test_a_stranger_is_led_to_sign_in_and_back_and_nothing_is_asked(door: Door, path: str) -> None:
    page = get(door.browser(), path)
    assert page.status_code == 303
    assert page.headers["Location"] == ("/ui/login" if path == "/" else f"/ui/login?next={path}")
    assert not door.asked


@each_row("path", [*PATHS, *ACT_PATHS])
def test_who_has_no_role_sees_nothing(door: Door, path: str) -> None:
    page = get(door.browser("EVE"), path)
    assert page.status_code == 403
    assert "shop" not in page.text.replace("shop-prod", "shop") or "row of `page.roles`" in page.text
    assert not door.asked


@each_row("path", [path.replace("shop-prod", "infra") for path in (*PATHS[2:], *ACT_PATHS)])
def test_a_target_that_isnt_a_viewers_is_answered_as_one_that_isnt_there(door: Door, path: str) -> None:
    client = door.browser("BOB")
    hidden, missing = get(client, path), get(client, path.replace("infra", "no-such-target"))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.text.replace("infra", "X") == missing.text.replace("no-such-target", "X")
    assert not door.asked


def test_a_viewer_sees_the_rows_of_his_targets_alone(door: Door) -> None:
    page = get(door.browser("BOB"), "/")
    assert door.asked[0]["names"] == ["shop-dev", "shop-prod"]
    assert ('id="row-shop-dev"' in page.text, "infra" in page.text) == (True, False)


def test_the_overview_lists_retired_targets_that_a_visitor_may_see(door: Door) -> None:
    gone = {
        "namespace": "anneal-system",
        "cluster": "default",
        "commit": "a" * 40,
        "subject": "",
        "orphans": 0,
        "takenBy": "",
        "stranger": False,
        "movedTo": "",
    }
    door.retired = [{**gone, "target": name, "next": f"anneal retire {name} --prune"} for name in ("shop-old", "infra-old")]
    page = get(door.browser("BOB"), "/").text
    assert "anneal retire shop-old --prune" in page
    assert "infra-old" not in page
    door.retired = []
    assert "Retired" not in get(door.browser("ADA"), "/").text


@pytest.mark.parametrize("path", ACT_PATHS)
def test_a_viewer_is_shown_no_act_and_may_do_none(door: Door, path: str) -> None:
    client, operator = door.browser("BOB"), door.browser("ADA")
    assert 'class="act ' not in get(client, "/ui/targets/shop-prod").text
    assert get(client, path).status_code == 403
    form = fields(get(operator, path))
    assert post(client, path, form).status_code == 403
    csrf = re.findall(r'name="csrf" value="([^"]+)"', get(client, "/").text)[0]
    door.asked.clear()
    page = post(client, path, {**form, "csrf": csrf})
    assert (page.status_code, "is no operator of shop-prod" in page.text) == (403, True)
    assert (door.queue.jobs, door.asked) == ([], [])


@pytest.mark.parametrize(
    ("act", "job"),
    [
        ("replay", {"force": True}),
        ("approve", {"approve": "h1"}),
        ("rollback", {"commit": sha("c"), "rollback": True}),
        ("unpin", {"unpin": True}),
    ],
)
def test_a_confirmed_act_is_a_job_of_the_visitor(door: Door, act: str, job: dict[str, Any]) -> None:
    client, path = door.browser("ADA"), f"/ui/targets/shop-prod/{act}"
    shown = get(client, f"{path}?to={sha('b')}" if act == "rollback" else path)
    going = "apps/Deployment/shop/api" if act == "approve" else "Service/shop/old"
    assert going in shown.text, "what is deleted is named"
    assert act == "approve" or str(LOST["object"]) in shown.text, "by a hook, too"
    done = post(client, path, fields(shown))
    assert (done.status_code, done.headers["Location"]) == (303, f"/ui/targets/shop-prod?asked={act}&run=shop-prod.0123456789ab")
    assert door.queue.jobs == [Job("shop-prod", "replay", actor="ada", **job)]


def test_a_pause_is_asked_of_the_worker(door: Door) -> None:
    client = door.browser("ADA")
    form = fields(get(client, "/ui/targets/shop-prod/suspend")) | {"reason": "maintenance", "until": "2h"}
    assert post(client, "/ui/targets/shop-prod/suspend", form).status_code == 303
    assert door.asked[-1] == {"question": "suspend", "name": "shop-prod", "by": "ada", "seen": "", "reason": "maintenance", "until": "2h"}
    assert get(client, "/ui/targets/shop-prod/resume").status_code == 409, "it isn't suspended yet"
    assert door.state
    door.state = replace(door.state, suspend=Suspend("bob", "a migration", "2999-01-01T00:00:00Z", NOON))
    shown = get(client, "/ui/targets/shop-prod/resume").text
    assert all(text in shown for text in ("Suspended by bob", ": a migration", "until 2999-01-01T00:00:00Z"))
    assert post(client, "/ui/targets/shop-prod/resume", fields(get(client, "/ui/targets/shop-prod/resume"))).status_code == 303
    assert door.asked[-1] == {"question": "resume", "name": "shop-prod", "by": "ada", "seen": NOON}
    assert not door.queue.jobs


@pytest.mark.parametrize("act", ["suspend", "resume"])
def test_a_pause_that_came_between_the_look_and_the_write_is_shown_and_stays(door: Door, act: str) -> None:
    assert door.state
    pause = Suspend("bob", "an incident", at=NOON)
    door.state = replace(door.state, suspend=pause if act == "resume" else None)
    client, path = door.browser("ADA"), f"/ui/targets/shop-prod/{act}"
    form = fields(get(client, path))
    door.trouble[act] = {"code": "shown-otherwise", "message": "another pause holds now"}
    page = post(client, path, form)
    assert (page.status_code, "nothing was done" in page.text) == (409, True)


def test_what_was_typed_is_still_there_when_it_is_refused(door: Door) -> None:
    client, path = door.browser("ADA"), "/ui/targets/shop-prod/suspend"
    form = fields(get(client, path)) | {"reason": "maintenance of the shop", "until": "yesterday"}
    door.trouble["suspend"] = {"code": "request-refused", "message": "until yesterday: lies in the past"}
    page = post(client, path, form)
    assert (page.status_code, "lies in the past" in page.text) == (400, True)
    assert ('value="maintenance of the shop"' in page.text, 'value="yesterday"' in page.text) == (True, True)


def test_what_was_shown_otherwise_is_shown_anew_and_not_done(door: Door) -> None:
    client, path = door.browser("ADA"), "/ui/targets/shop-prod/replay"
    form = fields(get(client, path))
    page = post(client, path, {**form, "shown": "another"})
    assert (page.status_code, door.queue.jobs) == (409, [])
    assert "nothing was done" in page.text
    assert post(client, path, fields(page)).status_code == 303, "the form is one of how it stands now"


def test_what_cant_be_planned_has_no_button_and_isnt_done(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = {"subject": "cluster", "message": "gives no answer", "place": "", "fix": ""}
    monkeypatch.setitem(GAP, "problems", [problem])
    monkeypatch.setitem(GAP, "objects", [])
    client, path = door.browser("ADA"), "/ui/targets/shop-prod/replay"
    shown = get(client, path)
    assert (shown.status_code, "gives no answer" in shown.text, ">Run now</button>" in shown.text) == (200, True, False)
    assert "Nothing is deleted" not in shown.text
    assert (post(client, path, fields(shown)).status_code, door.queue.jobs) == (409, [])


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"csrf": ""}, OWN),
        ({}, {"Origin": "https://evil.example.com", "Sec-Fetch-Site": "cross-site"}),
    ],
)
def test_a_form_of_another_site_does_nothing(door: Door, form: dict[str, str], headers: dict[str, str]) -> None:
    client, path = door.browser("ADA"), "/ui/targets/shop-prod/replay"
    sent = fields(get(client, path)) | form
    door.asked.clear()
    page = post(client, path, sent, headers)
    assert (page.status_code, door.queue.jobs, door.asked) == (403, [], [])


def test_a_post_without_a_session_is_401_and_leads_nowhere(door: Door) -> None:
    page = post(door.browser(), "/ui/targets/shop-prod/replay", {})
    assert (page.status_code, "Location" in page.headers, door.queue.jobs) == (401, False, [])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/replay/shop-prod", 401),
        ("GET", "/api/targets", 401),
        ("GET", "/api/targets/shop-prod/gap", 401),
        ("GET", "/metrics", 401),
        ("POST", "/webhooks/github", 401),
    ],
)
def test_a_session_counts_on_the_page_alone(door: Door, method: str, path: str, status: int) -> None:
    client = door.browser("ADA")
    sent: dict[str, Any] = {"data": "{}", "content_type": "application/json"} if method == "POST" else {}
    assert client.open(path, method=method, base_url=URL, headers=OWN, **sent).status_code in (status, 404)
    assert not door.queue.jobs


def test_logs_are_a_permission_of_their_own(door: Door) -> None:
    client = door.browser("BOB")
    assert get(client, "/ui/targets/shop-dev/logs?object=Pod/shop/a").status_code == 200
    assert door.asked[-1]["question"] in ("logs", "picture")
    door.asked.clear()
    refused = get(client, "/ui/targets/shop-prod/logs?object=Pod/shop/a")
    assert (refused.status_code, "may not read logs of shop-prod" in refused.text, door.asked) == (403, True, [])


def test_acts_that_come_later_have_a_place_on_an_operators_page(door: Door) -> None:
    door.by_configuration = True
    assert 'id="acts"' not in get(door.browser("BOB"), "/ui/targets/shop-prod").text
    page = get(door.browser("ADA"), "/ui/targets/shop-prod").text
    assert ('id="acts"' in page, 'class="act ' in page) == (True, False)


def test_the_menu_marks_where_one_is(door: Door) -> None:
    client = door.browser("ADA")
    marked = {path: re.findall(r'<a href="([^"]*)" aria-current="page">', get(client, path).text) for path in ("/", "/ui/deliveries")}
    assert marked == {"/": ["/"], "/ui/deliveries": ["/ui/deliveries"]}


def test_strangers_dont_read_the_version(door: Door) -> None:
    assert f"Anneal {__version__}" in get(door.browser("ADA"), "/").text
    assert [__version__ in get(door.browser(who), path).text for who, path in (("", "/ui/login"), ("EVE", "/"))] == [False, False]


def test_a_mistake_of_ours_is_said_without_its_inside(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    client = door.browser("ADA")
    door.trouble["targets"] = {"code": "internal"}  # without a message: the view fails
    page = get(client, "/")
    assert (page.status_code, "KeyError" in page.text, "KeyError" in caplog.text) == (500, False, True)
    assert "the log of the server says more" in page.text


def test_static_files_are_kept_by_browsers_and_no_other_file_is_served(door: Door) -> None:
    client = door.browser()
    for name in ("page.css", "page.js", "icon.svg"):
        page = get(client, asset(name))
        assert (page.status_code, page.headers["Cache-Control"]) == (200, "public, max-age=31536000, immutable")
    old = get(client, "/ui/static/0123456789ab/page.css")
    assert (old.status_code, old.headers["Cache-Control"]) == (200, "no-store"), "of another version, which a replica may be yet"
    for path in ("/ui/static/0/routes.py", "/ui/static/0/..%2froutes.py", "/ui/static/page.js", "/ui/static/0/../rendering.py"):
        assert get(client, path).status_code == 404


def test_without_a_loop_a_page_asks_again_by_itself(door: Door) -> None:
    page = get(door.browser("ADA"), "/ui/live?topic=/")
    assert (page.status_code, page.headers["Retry-After"]) == (503, "5")
    assert re.search(r'data-streams="[0-9a-f]+\.0"', get(door.browser("ADA"), "/").text)
    assert re.search(r'data-streams="[0-9a-f]+\.0"', get(door.browser("ADA"), "/ui/targets/shop-prod").text)
    polled = Door(None, "page")
    text = get(polled.browser("ADA"), "/").text
    assert ("data-streams" in text, 'data-topic="/"' in text) == (False, True)


def test_what_becomes_of_an_act_is_shown(door: Door) -> None:
    client, path = door.browser("ADA"), f"/ui/targets/shop-prod?asked=replay&run={RUN.id}"
    assert f'data-from="/ui/targets/shop-prod/run?id={RUN.id}"' in get(client, path).text
    door.run = {"run": RUN.id, "status": "ended", "outcome": "refused", "counts": {}, "message": "<b>not that</b>", "problems": []}
    shown = get(client, f"/ui/targets/shop-prod/run?id={RUN.id}").text
    assert ("refused" in shown, "&lt;b&gt;not that&lt;/b&gt;" in shown, "data-from" in shown) == (True, True, False)
    for other in ("infra.0123456789ab", "shop-prod", "../x", ""):
        assert get(client, f"/ui/targets/shop-prod/run?id={other}").status_code == 404
    assert "call this number" not in get(client, "/ui/targets/shop-prod?asked=call this number").text


def test_a_run_that_isnt_in_the_history_shows_nothing(door: Door) -> None:
    client = door.browser("ADA")
    assert get(client, "/ui/targets/shop-prod/history?run=another").status_code == 404
    shown = get(client, f"/ui/targets/shop-prod/history?run={RUN.id}")
    assert (shown.status_code, "Add api" in shown.text) == (200, True)
    assert [each for each in door.asked if each["question"] == "diff"] == [
        {"question": "diff", "name": "shop-prod", "before": "", "after": sha()}
    ]


def test_only_what_an_act_has_become_is_said(door: Door) -> None:
    client, at = door.browser("ADA"), "/ui/targets/shop-prod?asked="
    assert "Suspend: done." not in get(client, f"{at}suspend").text, "it isn't suspended"
    for act in ("approve", "approve&run=infra.0123456789ab", "replay&run=nonsense"):
        assert 'id="asked"' not in get(client, f"{at}{act}").text
    assert "Resume: done." in get(client, f"{at}resume").text
    assert door.state
    door.state = replace(door.state, suspend=Suspend("ada", at=NOON))
    assert "Suspend: done." in get(client, f"{at}suspend").text
    assert "Resume: done." not in get(client, f"{at}resume").text


@each_row("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_other_method_is_taken(door: Door, method: str) -> None:
    client = door.browser("ADA")
    for path in ("/", "/ui/targets/shop-prod", "/ui/targets/shop-prod/replay"):
        assert client.open(path, method=method, base_url=URL, headers=OWN).status_code == 405
    assert not door.queue.jobs


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("PUT", "/", {}, 405, "Method Not Allowed"),
        ("GET", "/ui/logout", {}, 404, "Not found"),
        ("GET", "/ui/targets/shop%2Dprod", {}, 404, "Not Found"),
        ("POST", "/ui/login", {"token": "x" * 20_000}, 413, "Request Entity Too Large"),
    ],
)
def test_a_person_reads_a_page_where_no_view_answers(
    door: Door, method: str, path: str, body: dict[str, str], status: int, said: str
) -> None:
    page = door.browser("ADA").open(path, method=method, data=body, headers=OWN, base_url=URL, environ_overrides={"RAW_URI": path})
    assert (page.status_code, page.mimetype, f"<h1>{said}</h1>" in page.text) == (status, "text/html", True)
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


@each_row(("method", "path"), [("PUT", "/"), ("GET", "/ui/targets"), ("GET", "/ui/x%20y"), ("POST", "/api/targets")])
def test_a_program_and_who_has_no_page_reads_json(method: str, path: str) -> None:
    without = Door(None, "reads").app.test_client()
    page = without.open(path, method=method, base_url=URL, environ_overrides={"RAW_URI": path})
    assert (page.status_code in (404, 405), page.mimetype) == (True, "application/json")


def test_a_head_has_no_body_and_so_no_stream(door: Door) -> None:
    page = door.browser("ADA").head("/ui/live?topic=/", base_url=URL)
    assert (page.status_code, page.headers["Allow"]) == (405, "GET")


def test_a_target_that_never_ran_is_asked_for_no_events(door: Door) -> None:
    path = "/ui/targets/shop-prod"
    assert "data-from" in get(door.browser("ADA"), path).text
    never = Door()
    never.state = None
    page = get(never.browser("ADA"), path)
    assert (page.status_code, "data-from" in page.text) == (200, False)
