"""What tests of the page ask of a shop that a server deploys: kubectl and the record are the judges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from playwright.sync_api import Page

from handler.state.record import State, TargetHealth
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop
from tests.e2e.serve_process import Serving
from tests.page.page_client import LATE
from tests.patience import until


def sign_in(page: Page, token: str, path: str = "/") -> None:
    """Ask for a page as a stranger does, sign in by the form, and be there."""
    page.goto(path)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/ui/login" not in url)
    fresh(page)


def visit(page: Page, path: str) -> None:
    """Go to a page, and have it show what is now."""
    page.goto(path)
    fresh(page)


def fresh(page: Page) -> None:
    """Load a page again, as a person does where no script does, while a cluster is late for it."""

    def in_time() -> bool:
        if not page.get_by_text(LATE).count():
            return True
        page.reload()
        return False

    until(in_time)


def delivered(server: Serving, shop: Shop, *documents: Document) -> str:
    """Push these documents, and have the git host say so."""
    commit = shop.push(*documents)
    assert server.push(shop.target.repository.url, "refs/heads/main", commit) == 202
    return commit


def recorded(shop: Shop, holds: Callable[[State], object]) -> State:
    """Return the record once it is so."""
    found: list[State] = []

    def is_so() -> bool:
        state = shop.handler.store(shop.target).read().state
        found[:] = [state] if state else []
        return bool(state and holds(state))

    until(is_so, lambda: f"{found}")
    return found[0]


def settled(commit: str) -> Callable[[State], bool]:
    """Whether a commit is deployed, and nothing is under way."""
    return lambda state: state.commit == commit and state.attempt is None


def decided(shop: Shop) -> State:
    """Return the record without what a watch writes into it when it likes: how healthy the shop is, and since when."""
    return replace(shop.state(), health=TargetHealth(), soaks=())


def uids(shop: Shop) -> dict[str, str]:
    """Return the uid of each live object of the shop, by its identity."""
    return {name: found["metadata"]["uid"] for name, found in shop.labelled().items()}


def queued(server: Serving) -> int:
    """How many runs the server has ended."""
    return len(server.runs())
