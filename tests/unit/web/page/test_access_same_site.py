"""Where a request comes from, and where a browser is sent after signing in."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import Headers

from handler.model.errors import Forbidden
from handler.web.page.access import own_path, require_own
from tests.unit.rows import each_row

OWN = "https://anneal.example.com"


@each_row(
    "headers",
    [
        {"Origin": OWN, "Sec-Fetch-Site": "same-origin"},
        {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": OWN, "Sec-Fetch-Site": "none"},
        {"Origin": OWN},
    ],
)
def test_a_form_of_the_page_is_its_own(headers: dict[str, str]) -> None:
    require_own(Headers(headers), OWN, known=True)


@each_row(
    "headers",
    [
        {"Origin": "https://evil.example.com"},
        {"Origin": "null"},
        {"Origin": "http://anneal.example.com"},
        {"Origin": f"{OWN}:8443"},
        {"Origin": f"{OWN}.evil.example.com"},
        {"Origin": OWN.upper()},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": OWN, "Sec-Fetch-Site": "cross-site"},
        {"Origin": OWN, "Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example.com", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "null", "Sec-Fetch-Site": "none"},
        {"Origin": OWN, "Sec-Fetch-Site": "whatever"},
    ],
)
def test_what_comes_from_elsewhere_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="another site"):
        require_own(Headers(headers), OWN)


def test_a_client_that_says_nothing_of_itself_needs_another_proof() -> None:
    require_own(Headers(), OWN)  # its form's token is looked at
    with pytest.raises(Forbidden):
        require_own(Headers(), OWN, known=True)


@each_row("path", ["/", "/?q=shop&sort=age", "/ui/targets/shop-prod", "/ui/targets/shop-prod/gap?object=a%2Fb", "/ui/deliveries"])
def test_paths_of_the_page_are_gone_back_to(path: str) -> None:
    assert own_path(path) == path


@each_row(
    "path",
    [
        *(
            "",
            "//evil.example.com",
            "/\\evil.example.com",
            "https://evil.example.com",
            "https:evil.example.com",
            "\\\\evil",
            "javascript:alert(1)",
        ),
        *(
            "/ui/x\r\nSet-Cookie: a=b",
            "/\t/evil",
            "/ui/../../x",
            "/api/targets",
            "/replay/shop",
            "/uix",
            "/ui",
            " /",
            "/#//evil",
            "/ui/\u00e9",
        ),
        *(
            "/ui/login",
            "/ui/login?next=/",
            "/ui/logout",
            "/ui/login/oidc",
            "/ui/" + "a" * 400,
            "/?" + "a" * 600,
            "/@evil",
            "/ui/targets/a\n",
        ),
    ],
)
def test_anything_else_leads_to_the_overview(path: str) -> None:
    assert own_path(path) == "/"
