"""Who may see and do what, asked as a program that forges requests would: forms of others, other sites, other roles; cookies elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from infra.browser.faults import Faults
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment
from tests.e2e.one_target import Shop
from tests.e2e.serve_process import TOKEN, Serving, signed
from tests.page.conftest import OpenPage
from tests.page.page_client import PageClient
from tests.page.page_server import NEIGHBOUR, OPERATOR, STRANGER, VIEWER, PageServer
from tests.page.served_shops import decided, recorded, settled, sign_in
from tests.page.small_site import Site, document
from tests.patience import until

ACTS = ("approve", "replay", "rollback", "unpin", "suspend", "resume")


@dataclass(frozen=True)
class Block:
    """Two shops behind one server: lin operates `own`, and `other` is none of hers."""

    server: Serving
    own: Shop
    other: Shop

    def pages_of(self, shop: Shop) -> list[str]:
        at, run = f"/ui/targets/{shop.name}", shop.state().history[0].id
        tabs = [f"{at}/{tab}" for tab in ("gap", "inventory", "orphans", "history", "events")]
        logs = f"{at}/logs?object=Deployment/{shop.name}/web"
        return [at, *tabs, f"{at}/history?run={run}", logs, *(f"{at}/{act}" for act in ACTS)]


@pytest.fixture(scope="module")
def block(open_shops: Open, servers: PageServer) -> Block:
    own, other = open_shops(), open_shops()
    for shop in (own, other):
        shop.create_namespace()
        shop.push(deployment(shop.name, "web"), config_map(shop.name, "settings"))
    server = servers(own, other)
    for shop in (own, other):
        recorded(shop, settled(shop.head))
    until(lambda: len(server.runs()) == 2)  # both have ended, too
    return Block(server, own, other)


def test_a_forged_form_does_nothing(block: Block) -> None:
    ada, again = PageClient(block.server).signed_in(OPERATOR), PageClient(block.server).signed_in(OPERATOR)
    path, other = f"/ui/targets/{block.own.name}/replay", f"/ui/targets/{block.own.name}/suspend"
    form = ada.get(path).form
    before, runs = decided(block.own), len(block.server.runs())
    forged = {
        "no token": ada.post(path, form | {"csrf": ""}),
        "a token of another session": ada.post(path, form | {"csrf": again.get(path).form["csrf"]}),
        "another origin": ada.post(path, form, Origin="https://evil.example.com"),
        "no origin of a browser": ada.post(path, form, Origin="null", Sec_Fetch_Site=""),
        "another site": ada.post(path, form, Sec_Fetch_Site="cross-site"),
        "a neighbour of the site": ada.post(path, form, Sec_Fetch_Site="same-site"),
        "a pause": ada.post(other, {"reason": "none", "until": ""}),
        "a sign-out": ada.post("/ui/logout"),
    }
    assert {why: answer.status for why, answer in forged.items()} == dict.fromkeys(forged, 403)
    assert PageClient(block.server).post(path, form).status == 401
    assert ada.get(path).status == 200, "she is still signed in"
    assert (decided(block.own), len(block.server.runs())) == (before, runs)
    assert ada.post(path, form).status == 303, "the same form counts when it is sent as it was shown"
    until(lambda: len(block.server.runs()) > runs)


def test_a_form_on_another_site_is_refused_in_a_browser(block: Block, open_page: OpenPage, faults: Faults) -> None:
    action = f"{block.server.url}/ui/targets/{block.own.name}/suspend"
    form = f'<form method="post" action="{action}"><input type="hidden" name="reason" value="evil"><button>Win</button></form>'
    with Site({"/": document(form), "/icon": ""}) as site:
        page = open_page(block.server.url, also=(site.url,))
        sign_in(page, OPERATOR)
        page.goto(site.url)
        page.get_by_role("button", name="Win").click()
        expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    faults.expect("status of 403")
    assert block.own.state().suspend is None


def test_a_viewer_may_look_and_not_act(block: Block) -> None:
    ada, grace = PageClient(block.server).signed_in(OPERATOR), PageClient(block.server).signed_in(VIEWER)
    form = ada.get(f"/ui/targets/{block.own.name}/replay").form
    own = grace.get(f"/ui/targets/{block.own.name}").text.rpartition('name="csrf" value="')[2].partition('"')[0]
    assert len(own) == 64
    runs = len(block.server.runs())
    for act in ACTS:
        path = f"/ui/targets/{block.own.name}/{act}"
        assert grace.get(path).status == 403
        assert grace.post(path, form | {"csrf": own}).status == 403
    assert len(block.server.runs()) == runs
    assert "/replay" not in grace.get(f"/ui/targets/{block.own.name}").text
    assert "rollback?to" not in grace.get(f"/ui/targets/{block.own.name}/history").text


def test_what_a_person_may_not_see_isnt_there(block: Block) -> None:
    lin, other = PageClient(block.server).signed_in(NEIGHBOUR), block.other.name
    unknown = lin.get("/ui/targets/nowhere")
    for path in block.pages_of(block.other):
        answer = lin.get(path)
        assert (answer.status, answer.text.replace(other, "nowhere")) == (404, unknown.text), path
        assert lin.post(path.partition("?")[0], {}).status in (403, 404, 405)
    body, headers = signed(block.other.target.repository.url, "refs/heads/main", block.other.head)
    assert block.server.send("POST", "/webhooks/github", body, headers)[0] == 202
    assert other in PageClient(block.server).signed_in(VIEWER).get("/ui/deliveries").text
    for path in ("/", "/?q=" + other, "/ui/deliveries"):
        answer = lin.get(path)
        assert answer.status == 200
        assert not {f"row-{other}", f"/ui/targets/{other}"} & set(re.findall(r"[\w/-]+", answer.text))
        assert other not in answer.text or path == f"/?q={other}", "but for the words that she has typed"
    assert block.own.name in lin.get("/").text


def test_logs_are_a_permission_of_their_own(block: Block) -> None:
    own = f"/ui/targets/{block.own.name}"
    logs = f"{own}/logs?object=Deployment/{block.own.name}/web"
    for token, status in ((OPERATOR, 200), (VIEWER, 403), (NEIGHBOUR, 403)):
        client = PageClient(block.server).signed_in(token)
        assert client.get(logs).status == status
        shown = client.get(f"{own}/inventory").text
        assert ("/logs?" in shown) == (status == 200), "no link to what one may not read"
        assert (" data-logs>" in client.get(own).text) == (status == 200), "what is live shows its links where the page says so"


def test_a_person_without_a_role_sees_nothing(block: Block) -> None:
    client = PageClient(block.server).signed_in(STRANGER)
    for path in ("/", "/ui/deliveries", "/ui/live?topic=/", f"/ui/live?topic={block.own.name}", *block.pages_of(block.own)):
        answer = client.get(path)
        assert answer.status == 403, path
        assert "has no role here" in answer.text
        assert block.other.name not in answer.text


def test_a_stranger_is_led_to_the_form_and_back(block: Block) -> None:
    client = PageClient(block.server)
    for path in ("/", "/ui/deliveries", *block.pages_of(block.own)):
        answer = client.get(path)
        assert answer.status == 303, path
        assert answer.headers["location"].startswith("/ui/login")
    assert client.get("/ui/targets/nowhere").status == 303, "what is there isn't said to a stranger"


def test_a_cookie_of_the_page_counts_nowhere_else(block: Block) -> None:
    ada = PageClient(block.server).signed_in(OPERATOR)
    for path in ("/api/targets", f"/api/targets/{block.own.name}", f"/api/targets/{block.own.name}/gap", "/api/deliveries", "/metrics"):
        assert ada.get(path).status == 401, path
        assert ada.get(path, Authorization=f"Bearer {TOKEN}").status in (200, 403), path
    runs = len(block.server.runs())
    assert ada.post(f"/replay/{block.own.name}").status == 401
    body, headers = signed(block.own.target.repository.url, "refs/heads/main", block.own.head)
    unsigned = {name.replace("-", "_"): value for name, value in headers.items() if "Signature" not in name}
    assert body
    assert ada.post("/webhooks/github", {"a": body.decode()}, **unsigned).status in (401, 403)
    assert len(block.server.runs()) == runs


def test_every_answer_has_the_headers_that_bind_a_browser(block: Block) -> None:
    ada = PageClient(block.server).signed_in(OPERATOR)
    for path in ("/", "/ui/login", "/ui/targets/nowhere", f"/ui/targets/{block.own.name}", "/ui/live?topic=nowhere"):
        policy = ada.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
