"""Signing in to the page of a running server: at a real dex, and through a real oauth2-proxy in front of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.signin.hosts import CLIENT_SECRET, Dex, Oauth2Proxy, kept_port
from tests.fakes.browser import Browser
from tests.rooms.web.conftest import Serving, served
from tests.rooms.web.test_page_sign_in import PROXY_SECRET, ROLES, SECRET, URL, browser, by_mock, config, dex, server  # noqa: F401 - fixtures, too

BEHIND = f"""
page:
  url: FRONT
  key: {{env: PAGE_KEY}}
  proxy: {{secret: {{env: PROXY}}}}
{ROLES}"""
pytestmark = pytest.mark.timeout(1200)  # the first one waits until dex and oauth2-proxy are built
DOCS = Path(__file__).resolve().parents[4] / "docs" / "page.md"


# --- OpenID Connect
def test_dex_signs_somebody_in_and_his_group_has_a_role(browser: Browser, server: Serving) -> None:
    assert browser.once("GET", f"{URL}/").status == 303
    landed = by_mock(browser, browser.get(f"{URL}/ui/login/oidc?next=/"))
    assert (landed.status, landed.url) == (200, f"{URL}/")
    assert "kilgore@kilgore.trout" in landed.text
    assert "shop-prod" in landed.text
    assert "slow" not in landed.text  # a target that the row doesn't name
    assert set(browser.cookies["anneal.example.com"]) == {"__Host-anneal-session"}  # the other came back, and is gone
    (callback,) = [url for url in browser.seen if "code=" in url]
    code = callback.partition("code=")[2].partition("&")[0]
    log = server.log.read_text()
    assert "kilgore@kilgore.trout" in log
    assert code not in log
    assert browser.get(callback).status == 401  # the same answer again


# --- oauth2-proxy
def alpha() -> str:
    """Return the documentation's configuration of oauth2-proxy, with this test's addresses."""
    block: str = next(block for block in re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL) if "injectRequestHeaders" in block)
    block = block.replace("0.0.0.0:4180", "{listen}").replace("http://127.0.0.1:8080", "{upstream}")
    return block.replace("https://login.example.com", "{issuer}").replace("/run/secrets/client-secret", "client-secret")


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[Oauth2Proxy, Serving]]:
    with kept_port() as port:
        front = f"http://127.0.0.1:{port.getsockname()[1]}"
        with (
            Dex({"anneal": f"{front}/oauth2/callback"}) as dex,
            served(tmp_path, config(BEHIND.replace("FRONT", front)), **SECRET) as server,
        ):
            proxy = Oauth2Proxy(dex, f"http://127.0.0.1:{server.port}", alpha(), port, {"ANNEAL_PROXY_SECRET": PROXY_SECRET})
            (proxy.root / "client-secret").write_text(CLIENT_SECRET)
            with proxy as running:
                yield running, server


def test_who_signs_in_at_oauth2_proxy_is_named_and_a_direct_request_is_nobody(proxied: tuple[Oauth2Proxy, Serving]) -> None:
    proxy, server = proxied
    browser, forged = Browser(), {"X-Forwarded-Email": "ada", "X-Forwarded-Groups": "authors", "X-Forwarded-User": "ada"}
    browser.sent = forged | {"X-Anneal-Proxy": "forged", "X_Forwarded_Email": "ada"}  # the browser's own, which the proxy replaces
    started = browser.get(f"{proxy.url}/oauth2/start?rd=/")
    landed = by_mock(browser, started)
    assert (landed.status, landed.url) == (200, f"{proxy.url}/")
    assert "kilgore@kilgore.trout" in landed.text
    assert "shop-prod" in landed.text
    assert "slow" not in landed.text

    direct = Browser(sent=forged)
    assert direct.once("GET", f"http://127.0.0.1:{server.port}/").status == 303
    for secret in ("", "wrong", f"{PROXY_SECRET}x"):
        assert direct.once("GET", f"http://127.0.0.1:{server.port}/", headers={"X-Anneal-Proxy": secret}).status == 303
    underscored = {"X_Anneal_Proxy": PROXY_SECRET, "X_Forwarded_Email": "ada"}
    assert Browser(sent=underscored).once("GET", f"http://127.0.0.1:{server.port}/").status == 303
    own = browser.cookies[proxy.url.removeprefix("http://")]
    replayed = Browser(cookies={f"127.0.0.1:{server.port}": own})
    assert replayed.once("GET", f"http://127.0.0.1:{server.port}/").status == 303
    assert PROXY_SECRET not in server.log.read_text()
    assert "without the proxy's secret" in server.log.read_text()
