"""What strangers write into commits, objects, events and deliveries is text on every page: nothing of it runs, nothing of it is markup."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.one_target import PATH, Shop
from tests.e2e.serve_process import SECRET, Serving
from tests.page.conftest import OpenPage
from tests.page.page_client import PageClient
from tests.page.page_server import OPERATOR, PageServer
from tests.page.served_shops import recorded, settled, sign_in, visit
from tests.patience import until

EVIL = """<img src=x onerror=alert(1)>'"><script>alert(2)</script>{{7*7}}"""
BRANCH = "<img/src=x/onerror=alert(1)>"
AUTHOR = """evil" onfocus="alert(1)" autofocus='' &lt;b {{7*7}} <evil@example.com>"""  # git has no other angle brackets there


_MARKUP = """() => [...document.querySelectorAll("*")].filter((each) =>
    (["IMG", "SCRIPT"].includes(each.tagName) && !each.getAttribute("src")?.startsWith("/ui/static/"))
    || [...each.attributes].some((attribute) => attribute.name.startsWith("on"))
    || (each.protocol && !/^https?:$/.test(each.protocol))).map((each) => each.outerHTML)"""
"""What no page of ours has: images and scripts of others, handlers, links to elsewhere than http and https."""


@dataclass(frozen=True)
class Alley:
    """`evil` shows all that may be written; `refused` pushes a label that the cluster refuses, with the label's text."""

    server: Serving
    evil: Shop
    refused: Shop

    @property
    def pages(self) -> list[str]:
        at, state = f"/ui/targets/{self.evil.name}", self.evil.state()
        tabs = [f"{at}/{name}" for name in ("gap", "inventory", "orphans", "history", "events", "resume")]
        runs = [f"{at}/history?run={run.id}" for run in state.history]
        asked = [f"/?q={EVIL}", f"{at}?asked={EVIL}", f"{at}/gap?object={EVIL}"]
        return ["/", "/ui/deliveries", at, f"/ui/targets/{self.refused.name}", *tabs, *runs, *asked]


def documents(shop: Shop, value: str) -> list[Document]:
    web = deployment(shop.name, "web", replicas=0, annotations={"note": value})
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "NOTE", "value": value}]
    return [config_map(shop.name, "notes", {"note": value}, annotations={"note": value}), web]


def committed(shop: Shop, value: str, parent: str = "") -> str:
    """Push these documents, in a file and by an author of evil names."""
    text = "\n---\n".join(json.dumps(document) for document in documents(shop, value))
    shop.work.write(f"{PATH}/<img src=x onerror=alert(1)>.yaml", text)
    shop.work.git("add", "-A")
    people = f"author {AUTHOR} 1700000000 +0000\ncommitter {AUTHOR} 1700000000 +0000\n"
    before = f"parent {parent}\n" if parent else ""
    raw = f"tree {shop.work.git('write-tree')}\n{before}{people}\n{EVIL} {value}\n"
    commit = shop.work.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw.encode())
    shop.work.git("update-ref", "HEAD", commit)
    shop.work.git("push", "-q", "origin", f"+HEAD:refs/heads/{BRANCH}")
    return commit


def delivered(server: Serving, shop: Shop, commit: str) -> None:
    """Send what a git host sends, with evil names."""
    url = shop.target.repository.url
    body = json.dumps(
        {"ref": f"refs/heads/{BRANCH}", "after": commit, "repository": {"clone_url": url}, "sender": {"login": EVIL}, "deleted": False}
    ).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": EVIL,
        "X-Hub-Signature-256": "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest(),
    }
    assert server.send("POST", "/webhooks/github", body, headers)[0] == 202


def event(shop: Shop) -> dict[str, Any]:
    about = {"apiVersion": "v1", "kind": "ConfigMap", "name": "notes", "namespace": shop.name}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "notes.1", "namespace": shop.name},
        "involvedObject": about,
        "type": "Warning",
        "reason": EVIL[:28],
        "message": EVIL,
        "source": {"component": EVIL},
        "lastTimestamp": "2030-01-01T00:00:00Z",
    }


@pytest.fixture(scope="module")
def alley(open_shops: Open, servers: PageServer) -> Alley:
    evil, refused = open_shops(), open_shops()
    for each in (evil, refused):
        each.create_namespace()
    first = committed(evil, f"1 {EVIL}")
    refused.push(config_map(refused.name, "notes", labels={"note": EVIL}))
    server = servers(evil, refused, more={evil.name: {"revision": {"branch": BRANCH}}})
    recorded(evil, settled(first))
    second = committed(evil, f"2 {EVIL}", first)
    delivered(server, evil, second)
    recorded(evil, settled(second))
    recorded(refused, lambda state: state.status.phase == "failed")
    evil.kubectl.run("create", "-f", "-", given=json.dumps(event(evil)))
    patch = {"metadata": {"annotations": {"live": EVIL}}, "data": {"note": f"by hand {EVIL}"}}
    evil.kubectl.ask("PATCH", f"/api/v1/namespaces/{evil.name}/configmaps/notes", patch, "application/merge-patch+json")
    ada = PageClient(server).signed_in(OPERATOR)
    paths = [f"/ui/targets/{each.name}/suspend" for each in (evil, refused)]
    assert [ada.post(path, ada.get(path).form | {"reason": EVIL, "until": ""}).status for path in paths] == [303, 303]
    return Alley(server, evil, refused)


def watched(open_page: OpenPage, server: Serving) -> tuple[Page, list[str]]:
    """Open a page of which each dialog is noted."""
    page, dialogs = open_page(server.url), list[str]()

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    sign_in(page, OPERATOR)
    return page, dialogs


def assert_inert(page: Page, dialogs: list[str]) -> None:
    assert (page.evaluate(_MARKUP), dialogs) == ([], []), page.url


def test_no_page_makes_markup_of_what_strangers_write(alley: Alley, open_page: OpenPage) -> None:
    page, dialogs = watched(open_page, alley.server)
    for path in alley.pages:
        answer = page.goto(path)
        assert answer
        assert answer.status == 200, path
        assert_inert(page, dialogs)


def test_what_strangers_write_is_shown_as_they_wrote_it(alley: Alley, open_page: OpenPage) -> None:
    page, dialogs = watched(open_page, alley.server)
    at = f"/ui/targets/{alley.evil.name}"
    shown = {
        "/": [BRANCH, EVIL],
        at: [BRANCH, EVIL, "Suspended by ada"],
        f"/ui/targets/{alley.refused.name}": [EVIL[:28]],
        f"{at}/gap": [f"by hand {EVIL}", "<img src=x onerror=alert(1)>.yaml"],
        f"{at}/history": [EVIL, AUTHOR.partition(" <")[0]],
        f"{at}/events": [EVIL],
        "/ui/deliveries": [EVIL, BRANCH],
    }
    for path, texts in shown.items():
        visit(page, path)
        main = page.get_by_role("main")
        for text in texts:
            expect(main).to_contain_text(text)
        assert_inert(page, dialogs)


def test_what_comes_while_a_page_is_open_is_text_too(alley: Alley, open_page: OpenPage) -> None:
    page, dialogs = watched(open_page, alley.server)
    page.goto(f"/ui/targets/{alley.evil.name}")
    overview = open_page(alley.server.url)
    sign_in(overview, OPERATOR)
    for each in (page, overview):
        expect(each.locator("#connection")).to_have_text("live")
    page.evaluate("window.opened = 'once'")
    ada = PageClient(alley.server).signed_in(OPERATOR)
    confirming = open_page(alley.server.url)
    sign_in(confirming, OPERATOR)
    for act in ("resume", "replay"):
        path = f"/ui/targets/{alley.evil.name}/{act}"
        confirming.goto(path)
        assert_inert(confirming, dialogs)
        assert ada.post(path, ada.get(path).form).status == 303
    for path in ("unpin", f"rollback?to={alley.evil.state().commit}"):
        confirming.goto(f"/ui/targets/{alley.evil.name}/{path}")
        assert_inert(confirming, dialogs)
    commit = committed(alley.evil, f"3 {EVIL}", alley.evil.state().commit)
    delivered(alley.server, alley.evil, commit)
    expect(page.locator("#live .facts")).to_contain_text(f"{EVIL} 3 ")
    expect(overview.locator(f"#row-{alley.evil.name}")).to_contain_text(f"{EVIL} 3 ")
    until(lambda: settled(commit)(alley.evil.state()))
    for each in (page, overview):
        assert_inert(each, dialogs)
    assert page.evaluate("window.opened") == "once"
