"""Every page that an operator opens: in both schemes, on a phone and on a desk, without a fault and clean by axe's rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from handler.model.health import HealthState
from infra.browser.faults import Faults
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment, secret, service
from tests.e2e.one_target import Shop
from tests.e2e.serve_process import Serving
from tests.e2e.workload_status import fated
from tests.page.axe_clean import axe_clean
from tests.page.conftest import OpenPage
from tests.page.page_server import OPERATOR, VIEWER, PageServer
from tests.page.served_shops import delivered, recorded, settled, sign_in, visit
from tests.patience import until

CAREFUL = {"prune": {"holdAbove": {"count": 1, "fraction": 0.1}}}


@dataclass(frozen=True)
class Street:
    """Two shops behind one server: `held` waits for an approval after a push, `broken` has a pod that restarts for ever."""

    server: Serving
    held: Shop
    broken: Shop

    @property
    def pages(self) -> dict[str, str]:
        """Each page by a name."""
        held = f"/ui/targets/{self.held.name}"
        tabs = {name: f"{held}/{name}" for name in ("gap", "inventory", "orphans", "history", "events")}
        acts = {name: f"{held}/{name}" for name in ("approve", "replay", "suspend", "unpin")}
        pod = next(name for name in self.pods if name.startswith("web-"))
        state = self.held.state()
        return {
            "overview": "/",
            "deliveries": "/ui/deliveries",
            "target": held,
            "broken target": f"/ui/targets/{self.broken.name}",
            **tabs,
            "run": f"{held}/history?run={state.history[-1].id}",
            "logs": f"{held}/logs?object=Pod/{self.held.name}/{pod}",
            **acts,
            "rollback": f"{held}/rollback?to={state.commit}",
        }

    @property
    def pods(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.held.kubectl("get", "pods", "-n", self.held.name)["items"]]


@pytest.fixture(scope="module")
def street(open_shops: Open, servers: PageServer) -> Street:
    held, broken = open_shops(), open_shops()
    for each in (held, broken):
        each.create_namespace()
    web, shared = deployment(held.name, "web", replicas=2), service(held.name, "web")
    maps = [config_map(held.name, f"part-{number}") for number in range(4)]
    held.push(web, shared, secret(held.name, "login", "a password"), *maps)
    broken.push(fated(deployment(broken.name, "api", replicas=1), "crash-loop"))
    server = servers(held, broken, more={held.name: CAREFUL}, healthInterval="1s")
    recorded(held, settled(held.head))
    delivered(server, held, deployment(held.name, "web", "shop:2", replicas=2), shared, *maps[:1])
    recorded(held, lambda state: state.held)
    until(lambda: "CrashLoopBackOff" in str(broken.kubectl("get", "pods", "-n", broken.name)))
    delivered(server, broken, *broken.documents, config_map(broken.name, "more"))  # a run judges at once what a watch sees in a while
    recorded(broken, lambda state: state.health.state == HealthState.DEGRADED)
    return Street(server, held, broken)


def assert_in_order(page: Page) -> None:
    """At both widths nothing lies beside the window, and axe finds nothing."""
    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{page.url} is {wide[0]} wide at {width}"
        axe_clean(page)


@pytest.mark.parametrize(
    "names",
    [
        ("overview", "deliveries", "target", "broken target", "gap", "inventory"),
        ("orphans", "history", "run", "events", "logs"),
        ("approve", "replay", "rollback", "suspend", "unpin"),
    ],
)
def test_pages_have_no_fault_and_are_clean_in_both_schemes_and_widths(names: tuple[str, ...], street: Street, open_page: OpenPage) -> None:
    page, pages = open_page(street.server.url), street.pages
    sign_in(page, OPERATOR)
    for name in names:
        answer = page.goto(pages[name])
        assert answer
        assert answer.status == 200, name
        assert_in_order(page)


def test_the_form_to_sign_in_is_clean_and_says_what_went_wrong(street: Street, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(street.server.url)
    page.goto("/ui/login")
    assert_in_order(page)
    page.get_by_label("Token").fill("not one of them")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("no such token is known here")
    assert_in_order(page)
    faults.expect("status of 401")


def test_errors_are_pages_too(street: Street, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(street.server.url)
    sign_in(page, VIEWER)
    held = f"/ui/targets/{street.held.name}"
    for path, status, words in (
        (f"{held}/logs?object=Deployment/{street.held.name}/web", 403, "may not read logs"),
        (f"{held}/approve", 403, "is no operator"),
        ("/ui/targets/nowhere", 404, "isn't configured"),
        (f"{held}/history?run=none", 404, "isn't in the history"),
    ):
        answer = page.goto(path)
        assert answer
        assert answer.status == status
        expect(page.get_by_role("main")).to_contain_text(words)
        assert_in_order(page)
    faults.expect("status of 403")
    faults.expect("status of 404")


def test_an_act_that_makes_no_sense_any_more_is_a_page_with_409(street: Street, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(street.server.url)
    sign_in(page, OPERATOR)
    answer = page.goto(f"/ui/targets/{street.broken.name}/approve")
    assert answer
    assert answer.status == 409
    expect(page.get_by_role("main")).to_contain_text("nothing is held any more")
    assert_in_order(page)
    faults.expect("status of 409")


def test_pages_say_what_is_wrong_and_why(street: Street, open_page: OpenPage) -> None:
    page = open_page(street.server.url)
    main = page.get_by_role("main")
    sign_in(page, OPERATOR)
    expect(page.locator(f"#row-{street.held.name}")).to_contain_text("held")
    expect(page.locator(f"#row-{street.broken.name}")).to_contain_text("CrashLoopBackOff")
    pages = street.pages
    visit(page, pages["broken target"])
    expect(page.locator(".unhealthy")).to_contain_text("CrashLoopBackOff")
    expect(page.locator("#recent-events")).to_contain_text("BackOff")
    visit(page, pages["orphans"])
    expect(main).to_contain_text(f"ConfigMap/{street.held.name}/part-1")
    expect(main).to_contain_text("A guard holds 4 changes")
    visit(page, pages["inventory"])
    pods = page.locator(".tree .tree, .tree ul ul .node").filter(has_text="Pod ")

    def listed() -> bool:
        page.reload()
        return pods.count() == 2

    until(listed)  # a cluster that is busy makes Pods late, and this page shows what was when it was loaded
    visit(page, pages["logs"])
    expect(page.locator(".log")).to_contain_text("starting")
    visit(page, pages["gap"])
    expect(page.locator("details.object.bad").filter(has_text="Deployment/")).to_contain_text("shop:2")
    visit(page, pages["deliveries"])
    expect(main).to_contain_text("matched")


def test_on_a_phone_each_value_stands_beside_its_columns_name(street: Street, open_page: OpenPage) -> None:
    page = open_page(street.server.url, width=390)
    sign_in(page, OPERATOR, street.pages["gap"])
    value = page.locator("details.object.bad td").filter(has_text="shop:2")
    expect(value).to_be_visible()
    assert value.evaluate("each => getComputedStyle(each, '::before').content").startswith('"Declared"')
    for name in ("gap", "orphans", "events", "replay", "overview"):
        visit(page, street.pages[name])
        bare = "main table:not([role=table]), main td:not([role=cell]), main table.fields td:not([data-label])"
        assert page.locator(bare).count() == 0, name
        expect(page.locator("main th[role=columnheader]").first).to_be_attached()


def test_a_link_to_logs_is_for_those_who_may_read_them(street: Street, open_page: OpenPage) -> None:
    for token, visible in ((OPERATOR, True), (VIEWER, False)):
        page = open_page(street.server.url)
        sign_in(page, token, street.pages["broken target"])
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator(".unhealthy .logs")).to_be_visible(visible=visible)


def test_the_keyboard_reaches_all_and_its_place_is_seen(street: Street, open_page: OpenPage) -> None:
    page = open_page(street.server.url)
    sign_in(page, OPERATOR)
    page.goto("/")
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    expect(focused).to_have_text("Skip to the content")
    box = focused.bounding_box()
    assert box
    assert box["x"] >= 0, "it is seen while it has the focus"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Search targets")).to_be_focused()
    page.keyboard.type(street.broken.name)
    expect(page.locator("#targets tbody tr:visible")).to_have_count(1)
    visit(page, street.pages["target"])
    seen = []
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(focused.text_content() or "")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", f"the focus is seen on {seen[-1]!r}"
        if "History" in seen:
            break
    assert seen.index("Approve") < seen.index("Gap") < seen.index("History"), seen


def test_a_server_without_a_page_answers_404_there(page_server: PageServer, open_page: OpenPage, faults: Faults, tmp_path: Path) -> None:
    nowhere = {"name": "one", "repository": {"url": "http://127.0.0.1:9/r.git"}, "namespaces": ["one"]}
    kubeconfig = {"cluster": {"kubeconfig": {"file": str(tmp_path / "none")}}}
    page = open_page(page_server(page=False, targets=[nowhere | kubeconfig]).url)
    for path in ("/", "/ui/login", "/ui/targets/one", "/ui/deliveries", "/ui/live"):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 404
    faults.expect("status of 404")


def rows_are(page: Page, *shops: str) -> None:
    """The overview has these rows in this order; without scripts a person loads it again where a cluster was late for it."""

    def in_time() -> bool:
        if not page.locator("[data-key=unread]:visible").count():
            return True
        page.reload()
        return False

    until(in_time)
    assert [row.get_attribute("id") for row in page.locator("#targets tbody tr").all()] == [f"row-{name}" for name in shops]


def test_the_overview_is_searched_filtered_and_sorted_without_scripts(street: Street, open_page: OpenPage) -> None:
    page = open_page(street.server.url, scripts=False)
    sign_in(page, VIEWER)
    rows_are(page, street.broken.name, street.held.name)
    page.get_by_role("navigation", name="Filter by state").get_by_role("link", name="held").click()
    page.wait_for_url(re.compile(r"\?.*state=held"))
    rows_are(page, street.held.name)
    page.get_by_role("link", name="all 2").click()
    page.wait_for_url(lambda url: "state=" not in url)
    names = sorted((street.held.name, street.broken.name))
    page.get_by_label("Sort by").select_option("name")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile(r"\?.*sort=name"))
    rows_are(page, *names)
    page.get_by_label("Search targets").fill(names[1])
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile(rf"\?.*q={names[1]}"))
    rows_are(page, names[1])
    expect(page.get_by_label("Sort by")).to_have_value("name")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.goto("/")
    expect(page.get_by_label("Token")).to_be_visible()
