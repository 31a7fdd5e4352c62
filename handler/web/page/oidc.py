"""Signing in by OpenID Connect: authorization code with PKCE, state and nonce (OpenID Connect Core 1.0, 3.1; RFC 9700, RFC 9207).

authlib makes the requests and checks the claims, joserfc the signature; `identity_provider` carries them, since authlib's own clients bound
neither the size nor the time of an answer. Law: no code, token or claim beside the name and the groups leaves this module.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from typing import Any

from authlib.common.security import generate_token
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jws import JWSRegistry

from handler.config.page_settings import PageSettings
from handler.config.secrets import Secret
from handler.model.errors import SenderError
from handler.web.page.identity_provider import IdentityProvider, ProviderRefused
from handler.web.page.proxy_headers import Named, is_name

CALLBACK = "/ui/login/callback"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""What may sign a token: no `none`, and no HMAC, for which a public key would do."""
LEEWAY = 60  # seconds that clocks may differ
MOST_GROUPS = 1000
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_TOKEN = 16 * 1024  # characters
_AGAIN = "sign in again"
_SAID = {
    "access_denied": "the provider denied it",
    "login_required": "the provider wants you to sign in there first",
    "consent_required": "the provider wants your consent first",
    "invalid_scope": "the provider doesn't know a scope: see `page.oidc.scopes`",
    "unauthorized_client": "the provider doesn't let this page sign people in",
    "temporarily_unavailable": "the provider is unavailable for now",
    "server_error": "the provider failed",
}


class SignInRefused(SenderError, code="sign-in-refused", status=401):
    """What came back from the provider is no valid sign-in."""


class OidcSignIn:
    """Signs people in at one provider."""

    def __init__(self, page: PageSettings, provider: IdentityProvider) -> None:
        if page.oidc is None:
            raise ValueError("page.oidc is missing")
        self._oidc, self._provider, self._back = page.oidc, provider, f"{page.url}{CALLBACK}"

    def start(self, path: str) -> tuple[str, dict[str, str]]:
        """Return where to send the browser, and what it keeps meanwhile. `path`: where it goes afterwards. Raises ProviderUnavailable."""
        pending = {name: generate_token(43) for name in ("state", "nonce", "verifier")} | {"path": path}
        url = prepare_grant_uri(
            self._provider.endpoint("authorization_endpoint"),
            self._oidc.client_id,
            "code",
            redirect_uri=self._back,
            scope=" ".join(self._oidc.scopes),
            state=pending["state"],
            nonce=pending["nonce"],
            code_challenge=create_s256_code_challenge(pending["verifier"]),
            code_challenge_method="S256",
        )
        return url, pending

    def finish(self, asked: Mapping[str, str], pending: Mapping[str, Any] | None, secret: Secret | None) -> Named:
        """Return who signed in. `asked`: the callback's query; `pending`: what the browser kept.

        Raises SignInRefused, ProviderUnavailable.
        """
        if pending is None:
            raise _refused("it took longer than ten minutes, or began in another browser or tab")
        if not hmac.compare_digest(asked.get("state", "").encode(), str(pending.get("state")).encode()):
            raise _refused("it isn't the sign-in that began here last")
        if asked.get("iss", self._issuer_unsaid()) != self._oidc.issuer:
            raise _refused("another issuer answered")
        if "error" in asked:
            raise _refused(_SAID.get(asked["error"], "the provider refused it"))
        if not asked.get("code"):
            raise _refused("the provider sent no code")
        answer = self._exchange(asked["code"], str(pending.get("verifier")), secret)
        return self._person(self._claims(answer, str(pending.get("nonce"))), answer)

    def _issuer_unsaid(self) -> str:
        """Return whose answer it is that names no issuer: no provider's, where the provider always names itself (RFC 9207, 2.4)."""
        return "" if self._provider.document().get("authorization_response_iss_parameter_supported") is True else self._oidc.issuer

    def _exchange(self, code: str, verifier: str, secret: Secret | None) -> dict[str, Any]:
        url = self._provider.endpoint("token_endpoint")
        body = prepare_token_request("authorization_code", code=code, redirect_uri=self._back, code_verifier=verifier)
        offered = self._provider.document().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        method = next((each for each in ("client_secret_basic", "client_secret_post") if each in offered), "client_secret_basic")
        auth = ClientAuth(self._oidc.client_id, secret.reveal() if secret else None, method if secret else "none")
        _, headers, body = auth.prepare("POST", url, dict(_FORM), body)
        try:
            return self._provider.ask(url, headers, body.encode())
        except ProviderRefused as refused:
            seen = "the provider doesn't take this page's client id or secret" if refused.status == 401 else "the provider refuses the code"
            raise _refused(seen, "see `page.oidc` in the configuration" if refused.status == 401 else _AGAIN) from None

    def _claims(self, answer: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """Return the checked claims of an answer's ID token."""
        text = answer.get("id_token")
        if not isinstance(text, str) or len(text) > _TOKEN:
            raise _refused("the provider sent no ID token")
        offered = self._provider.document().get("id_token_signing_alg_values_supported") or ["RS256"]
        allowed = [each for each in ALGORITHMS if each in offered] or ["RS256"]
        options = {
            "iss": {"essential": True, "value": self._oidc.issuer},
            "aud": {"essential": True, "values": [self._oidc.client_id]},
        }
        params = {"nonce": nonce, "client_id": self._oidc.client_id, "access_token": answer.get("access_token")}
        try:
            token = self._decoded(text, allowed)
            claims = CodeIDToken(token.claims, token.header, options, params)
            claims.validate(now=int(time.time()), leeway=LEEWAY)
        except (JoseError, ValueError, TypeError) as error:  # its text may hold a claim: its class says enough
            raise _refused(f"the provider's token isn't valid here ({type(error).__name__})") from None
        return dict(claims)

    def _decoded(self, text: str, allowed: list[str]) -> jwt.Token:
        registry = JWSRegistry(algorithms=allowed, strict_check_header=False)
        try:
            return jwt.decode(text, self._provider.keys(), registry=registry)
        except InvalidKeyIdError:
            return jwt.decode(text, self._provider.keys(unknown=True), registry=registry)

    def _person(self, claims: dict[str, Any], answer: Mapping[str, Any]) -> Named:
        user, groups = self._oidc.user_claim, self._oidc.groups_claim
        if user not in claims or groups not in claims:
            claims = self._more(str(claims["sub"]), answer) | claims
        name = claims.get(user)
        if not isinstance(name, str) or not is_name(name):
            raise _refused(f"the provider gives no name: the claim {user} is missing", "ask for its scope: `page.oidc.scopes`")
        if user == "email" and claims.get("email_verified", True) not in (True, "true"):  # some providers write a text
            raise _refused("the provider hasn't verified the e-mail address")
        listed = claims.get(groups, [])
        found = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
        return Named(name, tuple(group for group in found[:MOST_GROUPS] if isinstance(group, str)))

    def _more(self, subject: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the provider says of a person beside the token; nothing, where it has no such endpoint or no such scope."""
        url, token = self._provider.endpoint("userinfo_endpoint"), answer.get("access_token")
        if not url or not isinstance(token, str) or not (token.isascii() and token.isprintable()):
            return {}
        try:
            found = self._provider.ask(url, {"Authorization": f"Bearer {token}"})
        except ProviderRefused:
            return {}
        if found.get("sub") != subject:
            raise _refused("the provider answers about another person")
        return found


def _refused(seen: str, fix: str = _AGAIN) -> SignInRefused:
    return SignInRefused.of("sign-in", seen, fix=fix)
