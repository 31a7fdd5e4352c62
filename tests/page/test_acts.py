"""Acts on the page, with scripts and without: what a confirmation shows is what happens, by kubectl and the record; else nothing does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from infra.browser.faults import Faults
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.one_target import Shop
from tests.e2e.serve_process import Serving
from tests.page.conftest import OpenPage
from tests.page.page_client import PageClient
from tests.page.page_server import OPERATOR, PageServer
from tests.page.served_shops import decided, delivered, fresh, recorded, settled, sign_in, uids, visit
from tests.patience import until

CAREFUL = {"prune": {"holdAbove": {"count": 1, "fraction": 0.1}}}
scripted = pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])


@dataclass(frozen=True)
class Office:
    """Shops of one server: at `held` deletions wait for an approval, at `shop` nothing does."""

    server: Serving
    held: Shop
    shop: Shop


@pytest.fixture(scope="module")
def office(open_shops: Open, servers: PageServer) -> Office:
    held, shop = open_shops(), open_shops()
    for each in (held, shop):
        each.create_namespace()
    held.push(*maps(held, "a", "b", "c"))
    shop.push(*web(shop, "shop:1"))
    server = servers(held, shop, more={held.name: CAREFUL})
    for each in (held, shop):
        recorded(each, settled(each.head))
    return Office(server, held, shop)


def maps(shop: Shop, *names: str) -> list[Document]:
    return [config_map(shop.name, name) for name in names]


def web(shop: Shop, image: str) -> list[Document]:
    return [deployment(shop.name, "web", image), config_map(shop.name, "kept")]


def image(shop: Shop) -> str:
    found = shop.live(deployment(shop.name, "web"))
    assert found
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])


def going(page: Page, title: str) -> set[str]:
    """Return the objects that a confirmation says will be deleted."""
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    return set(page.locator("#going code").all_text_contents())


def confirmed(page: Page, label: str) -> None:
    """Press a confirmation's button, and be back at the target."""
    page.get_by_role("main").get_by_role("button", name=label, exact=True).click()
    expect(page.locator("#asked")).to_be_visible()
    fresh(page)


def pushed_before(office: Office, names: Sequence[str]) -> str:
    """Return the id of the plan that is held after a push of these objects alone."""
    known = office.held.state().held
    delivered(office.server, office.held, *maps(office.held, *names))
    found = recorded(office.held, lambda state: state.held and state.held != known and state.attempt is None).held
    assert found
    return found.id


@scripted
def test_an_approved_orphan_goes_and_nothing_else(scripts: bool, office: Office, open_page: OpenPage, faults: Faults) -> None:
    shop = office.held
    delivered(office.server, shop, *maps(shop, "a", "b", "c", "d"))
    recorded(shop, lambda state: settled(shop.head)(state) and not state.held)
    pushed_before(office, "abc"[:2])
    page = open_page(office.server.url, scripts=scripts)
    sign_in(page, OPERATOR, f"/ui/targets/{shop.name}")
    page.get_by_role("link", name="Approve").click()
    before, stale = uids(shop), going(page, f"Approve: {shop.name}")
    assert stale == {f"ConfigMap/{shop.name}/{name}" for name in "cd"}

    newer = pushed_before(office, "abd"[:1])
    page.get_by_role("main").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_contain_text("nothing was done")
    faults.expect("status of 409")
    assert uids(shop) == before
    state = shop.state()
    assert state.held
    assert (state.held.id, state.approval) == (newer, None)

    shown = going(page, f"Approve: {shop.name}")
    confirmed(page, "Approve")
    recorded(shop, settled(shop.head))
    after = uids(shop)
    assert set(before) - set(after) == shown == {f"ConfigMap/{shop.name}/{name}" for name in "bcd"}
    assert after == {name: uid for name, uid in before.items() if name not in shown}, "others are as they were"


@scripted
def test_a_rollback_from_the_history_pins_and_an_unpin_follows_again(scripts: bool, office: Office, open_page: OpenPage) -> None:
    shop = office.shop
    old = delivered(office.server, shop, *web(shop, f"shop:2-{scripts}"))
    recorded(shop, settled(old))
    new = delivered(office.server, shop, *web(shop, f"shop:3-{scripts}"))
    recorded(shop, settled(new))
    page = open_page(office.server.url, scripts=scripts)
    sign_in(page, OPERATOR, f"/ui/targets/{shop.name}/history")
    page.get_by_role("link", name=f"Roll back to {old[:8]}").first.click()
    expect(page.get_by_role("main")).to_contain_text("Nothing is deleted")
    expect(page.locator("details.object summary")).to_contain_text(f"Deployment/{shop.name}/web")
    confirmed(page, "Roll back")
    state = recorded(shop, settled(old))
    assert state.pin
    assert (state.pin.commit, state.pin.by, image(shop)) == (old, "ada", f"shop:2-{scripts}")

    visit(page, f"/ui/targets/{shop.name}")
    expect(page.get_by_role("main")).to_contain_text(f"Pinned to {old[:8]} by ada")
    page.get_by_role("link", name="Unpin").click()
    confirmed(page, "Unpin")
    assert recorded(shop, settled(new)).pin is None
    assert image(shop) == f"shop:3-{scripts}"


@scripted
def test_what_was_pushed_after_a_look_isnt_run_by_it(scripts: bool, office: Office, open_page: OpenPage, faults: Faults) -> None:
    shop = office.shop
    page = open_page(office.server.url, scripts=scripts)
    sign_in(page, OPERATOR, f"/ui/targets/{shop.name}")
    page.get_by_role("link", name="Run now").click()
    shown, before = shop.head, (image(shop), decided(shop))
    expect(page.get_by_role("main")).to_contain_text(shown[:8])
    newer = shop.push(*web(shop, f"shop:4-{scripts}"))  # and no delivery says so
    page.get_by_role("main").get_by_role("button", name="Run now").click()
    expect(page.get_by_role("alert")).to_contain_text("nothing was done")
    faults.expect("status of 409")
    expect(page.get_by_role("main")).to_contain_text(newer[:8])
    assert (image(shop), decided(shop)) == before
    confirmed(page, "Run now")
    state = recorded(shop, settled(newer))
    assert (image(shop), state.history[0].actor) == (f"shop:4-{scripts}", "ada")


@scripted
def test_a_pause_holds_back_a_push_until_it_is_ended(scripts: bool, office: Office, open_page: OpenPage) -> None:
    shop, server = office.shop, office.server
    page = open_page(server.url, scripts=scripts)
    sign_in(page, OPERATOR, f"/ui/targets/{shop.name}")
    page.get_by_role("link", name="Suspend").click()
    page.get_by_label("Reason").fill("under repair")
    page.get_by_label("Until").fill("2h")
    confirmed(page, "Suspend")
    pause = recorded(shop, lambda state: state.suspend).suspend
    assert pause
    assert (pause.by, pause.reason) == ("ada", "under repair")
    assert pause.until
    expect(page.get_by_role("main")).to_contain_text("Suspended by ada")
    before, ended = image(shop), len(server.runs(target=shop.name))
    delivered(server, shop, *web(shop, f"shop:5-{scripts}"))
    until(lambda: len(server.runs(target=shop.name)) > ended)
    assert image(shop) == before

    page.get_by_role("link", name="Resume").click()
    confirmed(page, "Resume")
    recorded(shop, lambda state: state.suspend is None)
    page.get_by_role("link", name="Run now").click()
    confirmed(page, "Run now")
    recorded(shop, settled(shop.head))
    assert image(shop) == f"shop:5-{scripts}"


def test_a_pause_that_came_while_a_form_was_open_is_left_alone(office: Office, open_page: OpenPage, faults: Faults) -> None:
    shop, other = office.held, PageClient(office.server).signed_in(OPERATOR)
    at = f"/ui/targets/{shop.name}"

    def asked(act: str, **entered: str) -> None:
        assert other.post(f"{at}/{act}", other.get(f"{at}/{act}").form | entered).status == 303

    page = open_page(office.server.url)
    main = page.get_by_role("main")
    sign_in(page, OPERATOR, f"{at}/suspend")
    page.get_by_label("Until").fill("30m")
    asked("suspend", reason="an incident", until="")
    incident = shop.state().suspend
    main.get_by_role("button", name="Suspend").click()
    expect(main).to_contain_text("is suspended already")
    assert shop.state().suspend == incident
    page.goto(f"{at}/resume")
    expect(main).to_contain_text("an incident")
    asked("resume")
    asked("suspend", reason="another incident", until="2h")
    main.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert")).to_contain_text("nothing was done")
    expect(main).to_contain_text("another incident")
    assert shop.state().suspend is not None
    confirmed(page, "Resume")
    assert shop.state().suspend is None
    faults.expect("status of 409")


@scripted
def test_a_field_that_no_person_may_enter_is_refused_and_said(scripts: bool, office: Office, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(office.server.url, scripts=scripts)
    sign_in(page, OPERATOR, f"/ui/targets/{office.held.name}/suspend")
    page.get_by_label("Until").fill("some day")
    page.get_by_role("main").get_by_role("button", name="Suspend").click()
    expect(page.get_by_role("main")).to_contain_text("some day")
    assert office.held.state().suspend is None
    faults.expect("status of 400")
