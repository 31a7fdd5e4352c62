"""What open tabs take and ask for: hidden ones nothing, ones without events a look now and then, and a stream again once there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, Route, expect

from handler.web.page.rendering import asset, static
from infra.browser.faults import Faults
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
from tests.e2e.one_target import Shop
from tests.e2e.serve_process import Serving
from tests.page.conftest import OpenPage
from tests.page.page_server import OPERATOR, VIEWER, PageServer
from tests.page.served_shops import delivered, recorded, settled, sign_in
from tests.page.small_site import Site
from tests.patience import until

OF_A_HOST = 6  # connections that a browser opens to one, by HTTP/1.1
HIDDEN = """hidden => {
    Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""
WORDS = """window.words = [];
new MutationObserver(() => {
    const word = document.getElementById("live")?.dataset.word;
    if (word && word !== words.at(-1)) words.push(word);
}).observe(document, {childList: true, subtree: true});"""
AT_ONCE = """window.pauses = [];
const later = window.setTimeout;
window.setTimeout = (call, pause, ...given) => later(call, pause < 2000 ? pause : pauses.push(pause) && 0, ...given);"""


@dataclass(frozen=True)
class Stall:
    """One shop, and a server of it."""

    server: Serving
    shop: Shop


@pytest.fixture(scope="module")
def stall(open_shops: Open, servers: PageServer) -> Stall:
    shop = open_shops()
    shop.create_namespace()
    shop.push(config_map(shop.name, "settings"))
    server = servers(shop)
    recorded(shop, settled(shop.head))
    return Stall(server, shop)


def watching(open_page: OpenPage, stall: Stall, token: str = VIEWER) -> Page:
    page = open_page(stall.server.url)
    sign_in(page, token, f"/ui/targets/{stall.shop.name}")
    expect(page.locator("#connection")).to_have_text("live")
    return page


def test_hidden_tabs_leave_the_browser_its_connections_and_follow_again_when_looked_at(stall: Stall, open_page: OpenPage) -> None:
    first = watching(open_page, stall)
    tabs = [first]
    first.evaluate(HIDDEN, True)
    for _ in range(OF_A_HOST):
        tab = first.context.new_page()
        tab.goto(first.url)
        expect(tab.locator("#connection")).to_have_text("live")
        tab.evaluate(HIDDEN, True)
        tabs.append(tab)
    commit = delivered(stall.server, stall.shop, config_map(stall.shop.name, "settings", {"key": "while hidden"}))
    recorded(stall.shop, settled(commit))
    for tab in (tabs[0], tabs[-1]):
        assert commit[:8] not in (tab.locator("#live .facts").text_content() or "")
        tab.evaluate(HIDDEN, False)
        expect(tab.locator("#live .facts")).to_contain_text(commit[:8])
        expect(tab.locator("#connection")).to_have_text("live")


def test_a_page_whose_stream_was_refused_looks_by_itself_and_streams_once_that_is_possible(
    stall: Stall, open_page: OpenPage, faults: Faults
) -> None:
    page, refused = open_page(stall.server.url), list[str]()

    def refuse(route: Route) -> None:
        refused.append(route.request.url)
        route.fulfill(status=502)

    page.route("**/ui/live*", refuse)
    page.clock.install()
    sign_in(page, VIEWER, f"/ui/targets/{stall.shop.name}")
    expect(page.locator("#connection")).to_have_text("looks every 10 s")
    commit = delivered(stall.server, stall.shop, config_map(stall.shop.name, "settings", {"key": "while refused"}))
    recorded(stall.shop, settled(commit))
    page.clock.run_for(10_000)
    expect(page.locator("#live .facts")).to_contain_text(commit[:8])
    assert len(refused) == 1
    page.unroute("**/ui/live*")
    page.clock.run_for(60_000)
    expect(page.locator("#connection")).to_have_text("live")
    faults.expect("502")


def test_a_session_that_is_over_is_said_and_leads_back_to_the_page(stall: Stall, open_page: OpenPage, faults: Faults) -> None:
    page = watching(open_page, stall)
    address = page.url
    page.context.clear_cookies()
    page.evaluate(HIDDEN, True)
    page.evaluate(HIDDEN, False)
    page.locator("#connection").get_by_role("link", name="sign in again").click()
    page.get_by_label("Token").fill(VIEWER)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#connection")).to_have_text("live")
    assert page.url == address
    faults.expect("EventSource's response has a MIME type")


def test_a_pause_is_seen_by_all_and_never_taken_back_by_what_was_sent_before(stall: Stall, open_page: OpenPage) -> None:
    looks, acts = watching(open_page, stall), watching(open_page, stall, OPERATOR)
    acts.context.add_init_script(WORDS)
    for act, word, possible in (("Suspend", "suspended", {"suspended"}), ("Resume", "healthy", {"healthy", "unknown", "rolling out"})):
        acts.locator("#acts").get_by_role("link", name=act).click()
        acts.get_by_role("main").get_by_role("button", name=act, exact=True).click()
        expect(acts.locator("#connection")).to_have_text("live")
        expect(looks.locator("#live")).to_have_attribute("data-word", word)
        expect(acts.locator("#live")).to_have_attribute("data-word", word)
        seen = set(acts.evaluate("words"))
        assert word in seen
        assert seen <= possible | {"unread"}  # of a cluster that is late


# --- the script alone
def page_of(live: str, body: str = "") -> str:
    """Return a page that has no events."""
    script = f'<title>A page</title><script type="module" src="{asset("page.js")}"></script>'
    frame = '<h1>A page</h1><span id="connection"></span><p id="said"></p>'
    return f'<!doctype html><html lang="en"><head>{script}</head><body{body}>{frame}{live}</body></html>'


def aged(age: str, word: str = "healthy") -> str:
    live = f'<div id="live"><details><summary>{word}</summary></details><time datetime="2026-01-01T00:00:00Z">{age} ago</time></div>'
    return page_of(live, ' data-topic="shop"')


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({asset("page.js"): static("page.js").decode(), "/favicon.ico": ""}) as served:
        yield served


def test_what_is_only_older_stays_as_it_is_and_what_was_opened_open(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url)
    page.clock.install()
    site.pages["/"] = aged("1 s")
    page.goto("/")
    expect(page.locator("#connection")).to_have_text("looks every 10 s")
    page.evaluate("document.querySelector('details').open = true; window.first = document.getElementById('live')")
    site.pages["/"] = aged("11 s")
    with page.expect_response(site.url + "/"):
        page.clock.run_for(10_000)
    site.pages["/"] = aged("21 s", "failed")
    assert page.evaluate("first.isConnected")
    page.clock.run_for(10_000)
    expect(page.locator("summary")).to_have_text("failed")
    assert page.evaluate("[first.isConnected, document.querySelector('details').open]") == [False, True]


def test_what_has_no_end_is_asked_for_more_and_more_seldom(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url)
    page.add_init_script(AT_ONCE)
    site.pages["/"] = site.pages["/run"] = page_of('<div id="asked" data-from="/run" data-every="2" data-last="1"></div>')
    page.goto("/")
    until(lambda: page.evaluate("pauses.length") > 100)
    pauses = page.evaluate("pauses")
    assert (pauses[0], pauses[100]) == (2000, 60_000)
    assert pauses == sorted(pauses)
    site.pages["/run"] = page_of('<div id="asked">ended</div>')
    expect(page.locator("#asked")).to_have_text("ended")


def test_a_clock_that_is_behind_makes_nothing_past_come_and_what_comes_is_due_at_last(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url)
    page.clock.install(time="2026-01-01T12:00:00Z")
    times = [("past", "12:01:00"), ("ahead", "12:01:30"), ("old", "10:00:00")]
    shown = "".join(f'<p><time class="{name}" datetime="2026-01-01T{time}Z"></time></p>' for name, time in times)
    site.pages["/"] = page_of(shown)
    page.goto("/")
    page.clock.run_for(6_000)
    assert page.locator("time").all_inner_texts() == ["0 s ago", "in 1 min", "2 h ago"]
    page.clock.run_for(120_000)
    assert page.locator("time").all_inner_texts() == ["1 min ago", "at once", "2 h ago"]
