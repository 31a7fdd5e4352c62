"""Signing in to the page of a running server: at a real dex, and through a real oauth2-proxy in front of it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest

from infra.signin.hosts import ADMIN, CLIENT_SECRET, PASSWORD, Dex
from tests.fakes.browser import Answer, Browser
from tests.rooms.web.conftest import CONFIG, Serving, served

URL = "https://anneal.example.com"
TOKEN, PROXY_SECRET, KEY = "ada-token-0123456789", "proxy-secret-0123456789", "page-key-0123456789abcdef0123456789abcdef"
SECRET = {"PAGE_KEY": KEY, "ADA": TOKEN, "CLIENT": CLIENT_SECRET, "PROXY": PROXY_SECRET}
ROLES = """
  roles:
    - {role: operator, groups: [authors], targets: [shop-prod]}
    - {role: viewer, users: [ada]}
"""
PAGE = f"""
page:
  url: {URL}
  key: {{env: PAGE_KEY}}
  oidc: {{issuer: ISSUER, clientId: anneal, clientSecret: {{env: CLIENT}}}}
  tokens: [{{name: ada, secret: {{env: ADA}}}}]
{ROLES}"""
pytestmark = pytest.mark.timeout(1200)  # the first one waits until dex and oauth2-proxy are built


def config(page: str) -> str:
    return CONFIG + page


@pytest.fixture(scope="module")
def dex() -> Iterator[Dex]:
    with Dex({"anneal": f"{URL}/ui/login/callback"}) as running:
        yield running


@pytest.fixture(scope="module")
def server(dex: Dex, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("page"), config(PAGE.replace("ISSUER", dex.url)), **SECRET) as running:
        yield running


@pytest.fixture
def browser(server: Serving) -> Browser:
    return Browser({URL: f"http://127.0.0.1:{server.port}"})


def by_mock(browser: Browser, chosen: Answer) -> Answer:
    """Follow dex' page of ways to its mock, which asks nothing."""
    found = re.search(r'href="(/auth/mock\?[^"]+)"', chosen.text)
    assert found, chosen.text
    return browser.get(urljoin(chosen.url, html.unescape(found[1])))


def by_password(browser: Browser, chosen: Answer, password: str) -> Answer:
    """Follow dex' page of ways to its form, and send that."""
    found = re.search(r'href="(/auth/local\?[^"]+)"', chosen.text)
    assert found, chosen.text
    form = browser.get(urljoin(chosen.url, html.unescape(found[1])))
    action = re.search(r'action="([^"]+)"', form.text)
    assert action, form.text
    return browser.post(urljoin(form.url, html.unescape(action[1])), {"login": ADMIN, "password": password})


def test_who_dex_knows_and_no_row_names_sees_nothing(browser: Browser) -> None:
    landed = by_password(browser, browser.get(f"{URL}/ui/login/oidc"), PASSWORD)
    assert landed.status == 403
    assert ADMIN in landed.text
    assert "shop-prod" not in landed.text


def test_a_wrong_password_leads_nowhere(browser: Browser) -> None:
    answer = by_password(browser, browser.get(f"{URL}/ui/login/oidc"), "wrong")
    assert answer.url.startswith("http://127.0.0.1:")  # dex' own page
    assert browser.once("GET", f"{URL}/").status == 303


def test_another_browser_s_callback_signs_nobody_in(browser: Browser, server: Serving) -> None:
    by_mock(browser, browser.get(f"{URL}/ui/login/oidc"))
    (callback,) = [url for url in browser.seen if "code=" in url]
    victim = Browser(browser.places)
    assert victim.get(callback).status == 401
    assert victim.once("GET", f"{URL}/").status == 303
    assert server.request("GET", "/healthz")[0] == 200


# --- the cookie and the rest of the door
def test_a_token_of_the_page_is_none_of_the_api(server: Serving) -> None:
    assert server.request("GET", "/api/targets", headers={"Authorization": f"Bearer {TOKEN}"})[0] == 401


def test_no_log_has_a_secret(browser: Browser, server: Serving) -> None:
    browser.post(f"{URL}/ui/login", {"token": TOKEN})
    browser.post(f"{URL}/ui/login", {"token": "guessed-token-CANARY"})
    log = server.log.read_text()
    assert '"a sign-in with a wrong token"' in log
    for value in (*SECRET.values(), "CANARY", *browser.cookies["anneal.example.com"].values()):
        assert value not in log
