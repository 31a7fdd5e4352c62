"""A server as tests of the page start it; without `page` in its configuration it has none."""

from __future__ import annotations

from infra.browser.faults import Faults
from tests.e2e.one_target import Shop
from tests.page.conftest import OpenPage
from tests.page.page_server import PageServer


def test_a_server_without_a_page_answers_404_there(shop: Shop, page_server: PageServer, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(page_server(shop, page=False).url)
    for path in ("/", "/ui/login", "/ui/targets/shop"):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 404
    faults.expect("status of 404")
