"""The page in a real Chromium: one browser for the files of this folder that a worker runs, a fresh context for each page that is opened.

A test fails at its end if its pages have left a fault that it didn't expect: `infra/browser/faults.py` says what one is.

    def test_a_viewer_sees_the_shop(shop: Shop, page_server: PageServer, open_page: OpenPage) -> None:
        page = open_page(page_server(shop).url, scheme="dark", width=390)
        sign_in(page, VIEWER)
        expect(page.get_by_role("link", name=shop.name)).to_be_visible()
        axe_clean(page)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from handler.render.sandbox import Sandbox
from infra.browser.chromium import Chromium
from infra.browser.faults import Faults
from infra.githost import Host
from tests.e2e.conftest import Open, host, open_shop, shop, shops  # noqa: F401 - fixtures
from tests.kubectl import Kubectl
from tests.page.page_server import PageServer, page_server, page_servers  # noqa: F401 - a fixture
from tests.patience import PATIENCE

OpenPage = Callable[..., Page]
expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    """The browser; it ends before this worker runs a test of another folder, which may need asyncio."""
    with Chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def open_shops(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Open]:  # noqa: F811 - fixtures
    """Open shops that a file's tests share."""
    with shops(host, sandbox, kubectl) as opened:
        yield opened


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Start servers that a file's tests share: see `page_servers`."""
    with page_servers(tmp_path_factory.mktemp("servers")) as start:
        yield start


@pytest.fixture
def faults() -> Iterator[Faults]:
    """What the browser complains about in this test; `faults.expect(text)` for what the test asks for."""
    seen = Faults()
    yield seen
    seen.close()


@pytest.fixture
def open_page(chromium: Chromium, faults: Faults) -> OpenPage:
    """Open a page of a server: `open_page(url, scheme="dark", width=390, scripts=False, also=(other url,))`; each is another person's."""

    def opened(url: str, also: tuple[str, ...] = (), scripts: bool = True, **context: Any) -> Page:
        made = chromium.context(url, scripts=scripts, **context)
        faults.watch(made, url, *also, scripts=scripts)
        return made.new_page()

    return opened
