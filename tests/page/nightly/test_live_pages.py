"""Open pages follow what happens, in several browsers at once: a rollout through its groups, a wait for health, and what has the focus."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment
from tests.e2e.one_target import Shop
from tests.e2e.rollouts import ROLLOUT, group, push, step
from tests.e2e.serve_process import Serving
from tests.e2e.workload_status import fated, made_ready
from tests.page.conftest import OpenPage
from tests.page.page_client import PageClient
from tests.page.page_server import NEIGHBOUR, OPERATOR, VIEWER, PageServer
from tests.page.served_shops import delivered, recorded, settled, sign_in


@dataclass(frozen=True)
class Stage:
    """`rolling` deploys by a Rollout; `waiting` waits until all is healthy. Pods become ready when a test makes them so."""

    server: Serving
    rolling: Shop
    waiting: Shop


@pytest.fixture(scope="module")
def stage(open_shops: Open, servers: PageServer) -> Stage:
    rolling, waiting = open_shops(rollout=ROLLOUT), open_shops()
    for each in (rolling, waiting):
        each.create_namespace()
    first = config_map(rolling.name, "settings")
    push(rolling, [first], group("base", step("CreateOrUpdate", first)))
    waiting.push(config_map(waiting.name, "settings"))
    more = {rolling.name: {"rollout": ROLLOUT}, waiting.name: {"wait": {"timeout": "10m"}}}
    server = servers(rolling, waiting, more=more, healthInterval="1s")
    for each in (rolling, waiting):
        recorded(each, settled(each.head))
    return Stage(server, rolling, waiting)


def watching(open_page: OpenPage, stage: Stage, token: str, shop: Shop, width: int = 1440) -> Page:
    """Open a shop's page; it is marked, so that a reload would be seen."""
    page = open_page(stage.server.url, width=width)
    sign_in(page, token, f"/ui/targets/{shop.name}")
    expect(page.locator("#connection")).to_have_text("live")
    page.evaluate("window.opened = 'once'")
    return page


def test_a_rollout_is_seen_through_its_groups_by_all_who_look(stage: Stage, open_page: OpenPage) -> None:
    shop, name = stage.rolling, stage.rolling.name
    pages = [watching(open_page, stage, OPERATOR, shop), watching(open_page, stage, VIEWER, shop, width=390)]
    overview = open_page(stage.server.url)
    sign_in(overview, VIEWER)
    settings, web = config_map(name, "settings", {"key": "2"}), fated(deployment(name, "web", replicas=1), "never-ready")
    last = config_map(name, "last")
    commit = push(
        shop,
        [settings, web, last],
        group("base", step("CreateOrUpdate", settings)),
        group("roll out", step("CreateOrUpdate", web, success=[{"healthy": {}}])),
        group("finish", step("CreateOrUpdate", last)),
    )
    assert stage.server.push(shop.target.repository.url, "refs/heads/main", commit) == 202
    for page in pages:
        groups = page.locator(".rollout .group")
        expect(groups).to_have_count(3)
        expect(groups.nth(0)).to_contain_text("1 of 1")
        expect(groups.nth(1)).to_contain_text("under way")
        expect(groups.nth(2)).to_contain_text("pending")
    expect(overview.locator(f"#row-{name}")).to_contain_text("rolling out")
    made_ready(shop.kubectl, shop.name, "web")
    for page in pages:
        expect(page.locator(".rollout .step.good")).to_have_count(3)
        expect(page.locator("#live")).to_have_attribute("data-word", "healthy")
        expect(page.locator("#live .facts")).to_contain_text(commit[:8])
        assert page.evaluate("window.opened") == "once", "it wasn't loaded anew"
    expect(overview.locator(f"#row-{name}")).to_contain_text("healthy")
    assert settled(commit)(shop.state())
    live = shop.live(web)
    assert live
    assert live["status"]["readyReplicas"] == 1


def test_a_viewer_is_offered_no_act_not_even_by_an_update(stage: Stage, open_page: OpenPage) -> None:
    page = watching(open_page, stage, VIEWER, stage.waiting)
    commit = delivered(stage.server, stage.waiting, config_map(stage.waiting.name, "settings", {"key": "more"}))
    expect(page.locator("#live .facts")).to_contain_text(commit[:8])
    expect(page.locator("#acts")).to_have_count(0)


def test_a_wait_is_explained_and_the_focus_stays_where_it_was(stage: Stage, open_page: OpenPage) -> None:
    shop = stage.waiting
    page = watching(open_page, stage, OPERATOR, shop)
    link = page.get_by_role("link", name="All of the history")
    link.focus()
    web = fated(deployment(shop.name, "web", replicas=1), "never-ready")
    commit = delivered(stage.server, shop, web)
    expect(page.locator(".wait")).to_contain_text("Deployment")
    expect(link).to_be_focused()
    made_ready(shop.kubectl, shop.name, "web")
    expect(page.locator("#live .facts")).to_contain_text(commit[:8])
    expect(page.locator("#live")).to_have_attribute("data-word", "healthy")
    expect(page.locator(".wait")).to_have_count(0)
    expect(link).to_be_focused()
    assert page.evaluate("window.opened") == "once", "it wasn't loaded anew"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="History")).to_be_visible()


def test_a_search_stays_while_rows_change(stage: Stage, open_page: OpenPage) -> None:
    page = open_page(stage.server.url)
    sign_in(page, OPERATOR)
    expect(page.locator("#connection")).to_have_text("live")
    page.get_by_label("Search targets").fill(stage.waiting.name)
    expect(page.locator("#targets tbody tr:visible")).to_have_count(1)
    settings = config_map(stage.rolling.name, "settings", {"key": "again"})
    commit = push(stage.rolling, [settings], group("base", step("CreateOrUpdate", settings)))
    assert stage.server.push(stage.rolling.target.repository.url, "refs/heads/main", commit) == 202
    expect(page.locator(f"#row-{stage.rolling.name}")).to_contain_text(commit[:8])
    expect(page.locator(f"#row-{stage.rolling.name}")).to_be_hidden()
    expect(page.get_by_label("Search targets")).to_be_focused()


def test_a_stream_holds_only_what_its_viewer_may_see(stage: Stage) -> None:
    name, other = stage.rolling.name, stage.waiting.name
    lin = PageClient(stage.server).signed_in(NEIGHBOUR)
    grace = PageClient(stage.server).signed_in(VIEWER)
    both = grace.stream("/", lambda found: f"row-{name}".encode() in found and f"row-{other}".encode() in found)
    assert other.encode() in both
    before = lin.stream("/", lambda found: f"row-{name}".encode() in found)
    assert other.encode() not in before
    unseen, unknown = (lin.get(f"/ui/live?topic={topic}") for topic in (other, "nowhere"))
    assert (unseen.status, unseen.text) == (unknown.status, unknown.text) == (503, "")
