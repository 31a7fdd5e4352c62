"""Signing in by OpenID Connect at a provider that errs or lies; a sound one, dex, is in tests/rooms/web/test_page_sign_in.py."""

from __future__ import annotations

import base64
import hmac
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient
from joserfc import jwt
from joserfc.jwk import OctKey
from werkzeug.test import TestResponse

from handler.web.page import identity_provider
from tests.fakes.oidc_provider import Provider, provider, rsa
from tests.fakes.page_visits import PAGE, URL, Visits, the_page
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

PENDING = "__Host-anneal-sign-in"


@pytest.fixture
def idp() -> Iterator[Provider]:
    with provider() as made:
        yield made


def new_visits(idp: Provider) -> Visits:
    return Visits(the_page(PAGE.replace("https://login.example.com", idp.url)))


@pytest.fixture
def visits(idp: Provider) -> Visits:
    return new_visits(idp)


@pytest.fixture
def client(visits: Visits) -> FlaskClient:
    return visits.app.test_client()


def start(client: FlaskClient, idp: Provider, path: str = "/") -> dict[str, str]:
    """Begin to sign in; return the query that the provider gets."""
    response = client.get("/ui/login/oidc", query_string={"next": path}, base_url=URL)
    assert response.status_code == 303, response.text
    asked = {name: values[0] for name, values in parse_qs(urlsplit(response.headers["Location"]).query).items()}
    idp.nonce = asked["nonce"]
    return asked


def back(client: FlaskClient, asked: dict[str, str], **query: str) -> TestResponse:
    return client.get("/ui/login/callback", query_string={"state": asked["state"], "code": "code-CANARY"} | query, base_url=URL)


def sign_in(client: FlaskClient, idp: Provider) -> TestResponse:
    return back(client, start(client, idp))


def who(client: FlaskClient) -> Any:
    response = client.get("/", base_url=URL)
    return response.get_json()["name"] if response.status_code == 200 else response.status_code


# --- the way
def test_a_person_is_signed_in_and_sees_what_his_groups_may(client: FlaskClient, idp: Provider) -> None:
    asked = start(client, idp, "/ui/targets/infra")
    assert asked["redirect_uri"] == f"{URL}/ui/login/callback"
    assert (asked["scope"], asked["code_challenge_method"], asked["response_type"]) == ("openid email groups", "S256", "code")
    response = back(client, asked)
    assert (response.status_code, response.headers["Location"]) == (303, "/ui/targets/infra")
    assert client.get("/", base_url=URL).get_json()["sees"] == ["shop-prod", "shop-dev", "infra"]
    (path, headers, form) = next(each for each in idp.asked if each[0] == "/token")
    assert path == "/token"
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"anneal:client-secret").decode()
    assert form["redirect_uri"] == asked["redirect_uri"]
    assert len(form["code_verifier"]) == 43
    assert "client-secret" not in str(form)


def test_document_and_keys_are_fetched_once(client: FlaskClient, idp: Provider) -> None:
    for _ in range(3):
        assert sign_in(client, idp).status_code == 303
    paths = [path for path, _, _ in idp.asked]
    assert (paths.count("/.well-known/openid-configuration"), paths.count("/keys"), paths.count("/token")) == (1, 1, 3)


def test_what_came_back_once_never_counts_again(client: FlaskClient, idp: Provider) -> None:
    asked = start(client, idp)
    assert back(client, asked).status_code == 303
    assert back(client, asked).status_code == 401
    assert len([path for path, _, _ in idp.asked if path == "/token"]) == 1


def test_a_sign_in_that_another_browser_began_is_refused(visits: Visits, client: FlaskClient, idp: Provider) -> None:
    asked = start(visits.app.test_client(), idp)  # the attacker's, whose code the victim's browser is sent to bring
    response = back(client, asked)
    assert response.status_code == 401
    assert "another browser" in response.text
    start(client, idp)
    assert back(client, asked).status_code == 401
    assert who(client) == 401


def test_a_sign_in_takes_ten_minutes_at_most(visits: Visits, client: FlaskClient, idp: Provider) -> None:
    asked = start(client, idp)
    visits.now += 600
    assert back(client, asked).status_code == 401


def test_the_cookie_of_a_sign_in_is_for_this_host_alone_and_no_script(client: FlaskClient, idp: Provider) -> None:
    start(client, idp)
    found = client.get_cookie(PENDING, domain="anneal.example.com")
    assert found is not None
    assert (found.http_only, found.secure, found.same_site) == (True, True, "Lax")


@pytest.mark.parametrize(
    ("error", "seen"), [("access_denied", "the provider denied it"), ("<script>alert(1)</script>", "the provider refused it")]
)
def test_an_error_of_the_provider_is_said_in_words_of_ours(client: FlaskClient, idp: Provider, error: str, seen: str) -> None:
    response = back(client, start(client, idp), error=error, error_description="<b>bold</b>")
    assert response.status_code == 401
    assert seen in response.text
    assert "bold" not in response.text
    assert "<script>" not in response.text
    assert "/ui/login/oidc" in response.text  # a way out


def test_another_issuer_s_answer_is_refused(client: FlaskClient, idp: Provider) -> None:
    assert back(client, start(client, idp), iss="https://evil.example.com").status_code == 401
    assert back(client, start(client, idp), iss=idp.url).status_code == 303


# --- tokens
def test_a_provider_that_always_names_itself_is_answered_by_no_other(client: FlaskClient, idp: Provider) -> None:
    idp.document = {"authorization_response_iss_parameter_supported": True}
    assert back(client, start(client, idp)).status_code == 401
    assert not any(path == "/token" for path, _, _ in idp.asked)
    assert back(client, start(client, idp), iss=idp.url).status_code == 303


def unsigned(idp: Provider, header: dict[str, Any] | None = None) -> str:
    parts = [header or {"alg": "none"}, idp.sound()]
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts), ""])


def by_public_key(idp: Provider) -> str:
    signed = unsigned(idp, {"alg": "HS256", "kid": "one"})[:-1]  # by hand: joserfc takes no public key for this
    mac = hmac.digest(idp.key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def by_client_secret(idp: Provider) -> str:
    return jwt.encode({"alg": "HS256", "kid": "one"}, idp.sound(), OctKey.import_key(b"client-secret" * 4), algorithms=["HS256"])


def by_another_key(idp: Provider) -> str:
    return jwt.encode({"alg": "RS256", "kid": "one"}, idp.sound(), rsa(""))


def by_its_own_key(idp: Provider) -> str:
    mine = rsa("")
    return jwt.encode({"alg": "RS256", "jwk": mine.as_dict(private=False)}, idp.sound(), mine)


def of_another_kid(idp: Provider) -> str:
    return jwt.encode({"alg": "RS256", "kid": "two"}, idp.sound(), idp.key)


def claiming(**claims: Any) -> Callable[[Provider], str]:
    def made(idp: Provider) -> str:
        found = {name: value for name, value in (idp.sound() | claims).items() if value is not ...}
        return jwt.encode(idp.header, found, idp.key)

    return made


FORGED: dict[str, Callable[[Provider], str]] = {
    "alg none": unsigned,
    "alg none with kid": lambda idp: unsigned(idp, {"alg": "None", "kid": "one"}),
    "HS256 by the public key": by_public_key,
    "HS256 by the client's secret": by_client_secret,
    "another key": by_another_key,
    "a key in its own header": by_its_own_key,
    "a kid of no key": of_another_kid,
    "another audience": claiming(aud="other"),
    "another audience, for our party": claiming(aud="other", azp="anneal"),
    "audiences without us": claiming(aud=["a", "b"]),
    "ours among others, for another party": claiming(aud=["anneal", "other"], azp="other"),
    "no audience": claiming(aud=...),
    "another issuer": claiming(iss="https://evil.example.com"),
    "an issuer with a slash": lambda idp: claiming(iss=f"{idp.url}/")(idp),
    "no issuer": claiming(iss=...),
    "another nonce": claiming(nonce="other"),
    "no nonce": claiming(nonce=...),
    "expired": claiming(exp=1_700_000_000),
    "no expiry": claiming(exp=...),
    "an expiry of text": claiming(exp="never"),
    "not valid yet": claiming(nbf=4_000_000_000),
    "issued in the future": claiming(iat=4_000_000_000),
    "no subject": claiming(sub=...),
    "another access token": claiming(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "no name": claiming(email=...),
    "a name of a list": claiming(email=["ada@example.com"]),
    "a name with a line break": claiming(email="ada\nroot"),
    "an address that wasn't verified": claiming(email_verified=False),
    "an address that wasn't verified, as text": claiming(email_verified="false"),
    "an address of which nothing is known": claiming(email_verified=None),
    "no token": lambda _idp: "",
    "nonsense": lambda _idp: "a.b.c",
    "megabytes": lambda _idp: "a" * 200_000,
}


@each_row("case", FORGED)
def test_a_forged_token_signs_nobody_in(idp: Provider, case: str, caplog: pytest.LogCaptureFixture) -> None:
    client = new_visits(idp).app.test_client()
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    made: list[str] = []

    def token() -> str:
        made.append(FORGED[case](idp))
        return made[-1]

    idp.token = token  # type: ignore[method-assign]  # this provider lies
    response = sign_in(client, idp)
    assert response.status_code == 401, response.text
    assert who(client) == 401
    assert "/ui/login/oidc" in response.text
    said = response.text + "".join(f"{record.getMessage()}{record.__dict__.get('fields')}" for record in caplog.records)
    assert "CANARY" not in said
    assert not made[0] or made[0] not in said


@pytest.mark.parametrize("verified", [True, "true", ...])
def test_the_same_provider_with_a_sound_token_signs_in(client: FlaskClient, idp: Provider, verified: Any) -> None:
    idp.token = lambda: claiming(email_verified=verified)(idp)  # type: ignore[method-assign]  # this provider lies
    assert sign_in(client, idp).status_code == 303
    assert who(client) == "ada@example.com"


def test_clocks_may_differ_a_little(client: FlaskClient, idp: Provider) -> None:
    idp.token = lambda: claiming(iat=idp.sound()["iat"] + 30, exp=idp.sound()["iat"] - 30)(idp)  # type: ignore[method-assign]  # this provider lies
    assert sign_in(client, idp).status_code == 303


def test_a_new_key_is_fetched_when_a_token_names_it(client: FlaskClient, idp: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sign_in(client, idp).status_code == 303
    idp.key = rsa("two")
    idp.header = {"alg": "RS256", "kid": "two"}
    idp.published.append(idp.key)
    assert sign_in(client, idp).status_code == 401  # looked for just now: who invents names of keys causes no requests
    monkeypatch.setattr(identity_provider, "AGAIN", 0.0)
    assert sign_in(client, idp).status_code == 303


def test_claims_that_lack_are_asked_for_and_must_be_about_the_same_person(client: FlaskClient, idp: Provider) -> None:
    idp.claims = {"email": "bob@example.com", "email_verified": True}
    idp.userinfo = {"groups": ["developers"], "email": "root@example.com"}
    assert sign_in(client, idp).status_code == 303
    assert who(client) == "bob@example.com"  # what the token says stands above it
    (_, headers, _) = next(each for each in idp.asked if each[0] == "/userinfo")
    assert headers["Authorization"] == "Bearer access-CANARY"
    idp.userinfo["sub"] = "s-2"
    assert sign_in(client, idp).status_code == 401


def test_hundreds_of_groups_fit_as_only_the_table_s_are_kept(client: FlaskClient, idp: Provider) -> None:
    idp.claims["groups"] = [f"group-{number}" for number in range(900)] + ["developers", 7, None]
    assert sign_in(client, idp).status_code == 303
    assert client.get("/", base_url=URL).get_json()["sees"] == ["shop-prod", "shop-dev"]


def test_another_client_ends_the_sessions_of_the_one_before(client: FlaskClient, idp: Provider) -> None:
    sign_in(client, idp)
    other = Visits(the_page(PAGE.replace("https://login.example.com", idp.url).replace("clientId: anneal", "clientId: other")))
    found = client.get_cookie("__Host-anneal-session", domain="anneal.example.com")
    assert found is not None
    with other.app.test_client() as another:
        another.set_cookie("__Host-anneal-session", found.value, domain="anneal.example.com", secure=True)
        assert who(another) == 401


# --- a provider that errs
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/.well-known/openid-configuration", (500, b"", {})),
        ("/.well-known/openid-configuration", (302, b"", {"Location": "http://127.0.0.1:1/"})),
        ("/.well-known/openid-configuration", (200, b"<html>", {})),
        ("/.well-known/openid-configuration", (200, b"[]", {})),
        ("/.well-known/openid-configuration", (200, b'{"issuer": "https://evil.example.com"}', {})),
        ("/.well-known/openid-configuration", (200, b'{"a": "' + b"a" * 300_000 + b'"}', {})),
        ("/keys", (200, b'{"keys": []}', {})),
        ("/keys", (404, b"", {})),
        ("/token", (503, b"", {})),
        ("/token", (200, b"access-CANARY", {})),
    ],
)
def test_what_a_provider_answers_amiss_is_said_and_can_be_tried_again(
    client: FlaskClient, idp: Provider, path: str, answer: tuple[int, bytes, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    idp.answers[path] = answer
    response = client.get("/ui/login/oidc", base_url=URL) if "well-known" in path else sign_in(client, idp)
    assert response.status_code == 503
    assert "CANARY" not in response.text
    assert "/ui/login/oidc" in response.text
    monkeypatch.setattr(identity_provider, "PAUSE", 0.0)
    del idp.answers[path]
    assert sign_in(client, idp).status_code == 303


def test_a_provider_that_failed_isn_t_asked_again_at_once(client: FlaskClient, idp: Provider) -> None:
    idp.answers["/.well-known/openid-configuration"] = (500, b"", {})
    assert [client.get("/ui/login/oidc", base_url=URL).status_code for _ in range(5)] == [503] * 5
    assert len(idp.asked) == 1


def test_a_client_that_isn_t_known_there_is_the_operator_s_to_mend(client: FlaskClient, idp: Provider) -> None:
    idp.answers["/token"] = (401, b'{"error": "invalid_client", "error_description": "CANARY"}', {})
    response = sign_in(client, idp)
    assert "take this page&#39;s client id or secret" in response.text
    assert "CANARY" not in response.text


def test_endpoints_are_encrypted_or_on_this_machine(client: FlaskClient, idp: Provider) -> None:
    idp.document["authorization_endpoint"] = "http://login.example.com/auth"
    assert client.get("/ui/login/oidc", base_url=URL).status_code == 503
