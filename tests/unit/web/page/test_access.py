"""Signing in by tokens and by a proxy, sessions and their end, forms that a visitor was shown: and what attackers try with them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from flask import Response
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from handler.config.secrets import Secret
from handler.web.page.sessions import LIFE, Cookies
from tests.fakes.page_visits import PAGE, PAGE_SECRETS, URL, Visits, another_key, the_page

pytestmark = pytest.mark.slow

OWN = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}
COOKIE = "__Host-anneal-session"


@pytest.fixture
def visits() -> Visits:
    return Visits()


def browser(visits: Visits) -> FlaskClient:
    return visits.app.test_client()


def sign_in(client: FlaskClient, who: str = "ADA", path: str = "/", **headers: str) -> TestResponse:
    form = {"token": PAGE_SECRETS.get(who, who), "next": path}
    return client.post("/ui/login", data=form, headers=OWN | headers, base_url=URL)


def look(client: FlaskClient, **headers: str) -> Any:
    response = client.get("/", base_url=URL, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return response.get_json() if response.status_code == 200 else response.status_code


def act(client: FlaskClient, csrf: str, headers: dict[str, str] | None = None) -> int:
    return client.post("/ui/act", data={"csrf": csrf}, headers=OWN if headers is None else headers, base_url=URL).status_code


def cookie(client: FlaskClient, name: str = COOKIE) -> str:
    found = client.get_cookie(name, domain="anneal.example.com")
    return found.value if found else ""


def proxied(name: str = "root@example.com", groups: str = "", secret: str = PAGE_SECRETS["PROXY"]) -> dict[str, str]:
    return {"X_Anneal_Proxy": secret, "X_Forwarded_Email": name, "X_Forwarded_Groups": groups}


# --- tokens
def test_a_token_signs_its_owner_in_and_he_sees_what_his_groups_may(visits: Visits) -> None:
    client = browser(visits)
    assert look(client) == 401
    response = sign_in(client, "BOB", "/ui/targets/shop-prod")
    assert (response.status_code, response.headers["Location"]) == (303, "/ui/targets/shop-prod")
    seen = look(client)
    assert (seen["name"], seen["way"], seen["sees"]) == ("bob", "token", ["shop-prod", "shop-dev"])
    assert seen["until"] == visits.now + LIFE


@pytest.mark.parametrize(
    "token", ["", "guessed", PAGE_SECRETS["ADA"][:-1], PAGE_SECRETS["PAGE_KEY"], PAGE_SECRETS["PROXY"], "\u00e9" * 2000]
)
def test_a_wrong_token_is_counted_and_said_without_the_value(visits: Visits, token: str, caplog: pytest.LogCaptureFixture) -> None:
    client = browser(visits)
    response = sign_in(client, token or "unset")
    assert (response.status_code, visits.failures, cookie(client)) == (401, 1, "")
    assert "no such token is known here" in response.text
    assert (token or "unset") not in response.text + caplog.text
    assert sign_in(client).status_code == 303  # wrong tries lock no owner of a token out


def test_the_cookie_is_for_this_host_alone_and_no_script(visits: Visits) -> None:
    given = sign_in(browser(visits)).headers["Set-Cookie"]
    assert given.startswith(f"{COOKIE}=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax", f"Max-Age={int(LIFE)}"} <= set(given.split("; "))
    assert "Domain" not in given


def test_on_this_machine_the_cookie_needs_no_tls() -> None:
    visits = Visits(the_page(PAGE.replace(URL, "http://127.0.0.1:8080")))
    given = browser(visits).post("/ui/login", data={"token": PAGE_SECRETS["ADA"]}, headers={"Origin": "http://127.0.0.1:8080"})
    assert given.headers["Set-Cookie"].startswith("anneal-session=")
    assert "Secure" not in given.headers["Set-Cookie"]


def test_signing_in_leads_nowhere_else(visits: Visits) -> None:
    path = "//evil.example.com"
    assert sign_in(browser(visits), path=path).headers["Location"] == "/"
    form = browser(visits).get("/ui/login", query_string={"next": path}).text
    assert 'name="next" value="/"' in form
    assert "evil" not in form


def test_what_is_asked_for_is_gone_back_to(visits: Visits) -> None:
    for asked, path in (("/?q=a%20b", "/ui/login?next=/%3Fq%3Da%2520b"), ("/ui/act", "/ui/login?next=/ui/act"), ("/", "/ui/login")):
        with visits.app.test_request_context(asked) as context:
            assert visits.access.sign_in_path(context.request) == path


def test_signing_in_needs_a_form_of_the_page(visits: Visits) -> None:
    client = browser(visits)
    for headers in ({"Origin": "https://evil.example.com"}, {"Sec-Fetch-Site": "cross-site"}, {}):
        form = {"token": PAGE_SECRETS["ADA"]}
        assert client.post("/ui/login", data=form, headers=headers, base_url=URL).status_code == 403
    assert cookie(client) == ""


# --- sessions
def test_each_sign_in_begins_a_session_of_its_own(visits: Visits) -> None:
    client = browser(visits)
    sign_in(client)
    before, csrf = cookie(client), look(client)["csrf"]
    sign_in(client)
    assert cookie(client) != before
    assert act(client, csrf) == 403  # of the session before


def test_a_cookie_counts_as_it_was_signed_alone(visits: Visits) -> None:
    client = browser(visits)
    sign_in(client, "BOB")
    good = cookie(client)
    body, _, signature = good.rpartition(".")
    forged = (
        f"{body[:-2]}AA.{signature}",
        f"{body}.{'A' * len(signature)}",
        body,
        good[::-1],
        "a.b",
        good + "A" * (4010 - len(good)),
        "{}.x",
    )
    for each in forged:
        client.set_cookie(COOKIE, each, domain="anneal.example.com", secure=True)
        assert look(client) == 401
    client.set_cookie(COOKIE, good, domain="anneal.example.com", secure=True)
    assert look(client)["name"] == "bob"


def test_what_is_signed_for_one_purpose_counts_for_no_other(visits: Visits) -> None:
    cookies, key, given = Cookies(encrypted=True, clock=lambda: visits.now), visits.page().key, Response()
    cookies.begin_pending(given, key, {"n": "root@example.com", "g": ["platform"], "w": "oidc", "i": "x", "b": ""})
    text = given.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
    for name, found in ((COOKIE, False), ("__Host-anneal-sign-in", True)):
        with visits.app.test_request_context(headers={"Cookie": f"{name}={text}"}) as context:
            assert bool(cookies.session(context.request, key) or cookies.pending(context.request, key)) is found


def test_authlib_is_loaded_only_where_openid_connect_is_configured() -> None:
    code = "import sys, handler.web.page.access; print([name for name in ('authlib', 'joserfc', 'urllib3') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_another_key_ends_all_sessions(visits: Visits) -> None:
    client = browser(visits)
    sign_in(client)
    visits.rotate(key=another_key())
    assert look(client) == 401
    sign_in(client)
    assert look(client)["name"] == "ada"


def test_a_session_ends_after_twelve_hours_and_none_begins_in_the_future(visits: Visits) -> None:
    client = browser(visits)
    sign_in(client)
    begun = visits.now
    visits.now = begun + LIFE - 1
    assert look(client)["name"] == "ada"
    visits.now = begun + LIFE
    assert look(client) == 401
    visits.now = begun - 120
    assert look(client) == 401


def test_a_token_that_is_gone_or_changed_ends_its_sessions(visits: Visits) -> None:
    client, found = browser(visits), visits.page()
    sign_in(client)
    visits.rotate(
        tokens=tuple((token, Secret("ada-token-changed-01") if token.name == "ada" else secret) for token, secret in found.tokens)
    )
    assert look(client) == 401
    visits.rotate(tokens=())
    assert look(client) == 401
    visits.rotate(tokens=found.tokens)
    assert look(client)["name"] == "ada"


def test_a_role_that_is_taken_away_counts_at_once(visits: Visits) -> None:
    client = browser(visits)
    sign_in(client, "BOB")
    stricter = replace(the_page(), roles=the_page().roles[:1])
    after = Visits(stricter)
    with after.app.test_client() as other:
        other.set_cookie(COOKIE, cookie(client), domain="anneal.example.com", secure=True)
        assert look(other) == 403


def test_signing_out_takes_a_form_and_ends_the_cookie(visits: Visits) -> None:
    client = browser(visits)
    sign_in(client)
    csrf = look(client)["csrf"]
    assert client.post("/ui/logout", data={"csrf": "x"}, headers=OWN, base_url=URL).status_code == 403
    assert client.post("/ui/logout", data={"csrf": csrf}, headers={"Origin": "https://evil.example.com"}, base_url=URL).status_code == 403
    assert look(client)["name"] == "ada"
    assert client.post("/ui/logout", data={"csrf": csrf}, headers=OWN, base_url=URL).headers["Location"] == "/ui/login"
    assert look(client) == 401
    assert client.post("/ui/logout", headers=OWN, base_url=URL).status_code == 303


# --- forms
def test_a_form_counts_for_the_visitor_it_was_shown_to(visits: Visits) -> None:
    ada, bob, mallory = browser(visits), browser(visits), browser(visits)
    sign_in(ada)
    sign_in(bob, "BOB")
    forms = [look(client)["csrf"] for client in (ada, bob)]
    assert act(ada, forms[0]) == 200
    assert [act(ada, csrf) for csrf in (forms[1], "", forms[0][:-1], forms[0].upper(), "\u00e9")] == [403] * 5
    assert act(bob, forms[0]) == 403
    assert act(mallory, forms[0]) == 401
    assert visits.acts == ["ada"]


# --- a trusted proxy
def test_the_proxy_names_a_visitor_with_each_request(visits: Visits) -> None:
    client = browser(visits)
    seen = look(client, **proxied("carol@example.com", "x,developers"))
    assert (seen["name"], seen["way"], seen["sees"]) == ("carol@example.com", "proxy", ["shop-prod", "shop-dev"])
    assert look(client) == 401  # its cookie is no sign-in
    assert look(client, **proxied("carol@example.com", "x")) == 403
    assert visits.failures == 0


def test_forms_behind_the_proxy_are_bound_to_who_it_names(visits: Visits) -> None:
    client = browser(visits)
    csrf = look(client, **proxied())["csrf"]
    headers = OWN | {name.replace("_", "-"): value for name, value in proxied().items()}
    other = headers | {"X-Forwarded-Email": "carol@example.com", "X-Forwarded-Groups": "platform"}
    assert look(client, **proxied())["csrf"] == csrf
    assert act(client, csrf, headers) == 200
    assert act(client, csrf, other) == 403
    assert act(browser(visits), csrf, headers) == 403  # another browser
    assert act(client, csrf, OWN) == 401
    assert visits.acts == ["root@example.com"]


@pytest.mark.parametrize("secret", ["", "wrong", PAGE_SECRETS["PAGE_KEY"], f"{PAGE_SECRETS['PROXY']}, {PAGE_SECRETS['PROXY']}"])
def test_headers_without_the_secret_are_nobody_s_and_counted(visits: Visits, secret: str, caplog: pytest.LogCaptureFixture) -> None:
    assert look(browser(visits), **proxied(secret=secret)) == 401
    assert visits.failures == 1
    assert "without the proxy's secret" in caplog.text
    assert "root@example.com" not in caplog.text


def test_forged_headers_change_nothing_of_a_session(visits: Visits) -> None:
    client = browser(visits)
    sign_in(client, "BOB")
    assert look(client, **proxied(secret="wrong"))["name"] == "bob"


def test_a_changed_secret_counts_at_once(visits: Visits) -> None:
    visits.rotate(proxy=Secret("another-proxy-secret-01"))
    assert look(browser(visits), **proxied()) == 401
    assert look(browser(visits), **proxied(secret="another-proxy-secret-01"))["name"] == "root@example.com"


def test_without_a_proxy_in_the_configuration_no_header_counts() -> None:
    visits = Visits(replace(the_page(), proxy=None))
    assert look(browser(visits), **proxied()) == 401
    assert visits.failures == 0
