"""A page for tests: settings with all ways to sign in, and an application of nothing but its routes, `GET /` and an act."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask import Flask, Response, jsonify, request

from handler.config.load import parse
from handler.config.page_settings import PageSettings
from handler.config.secrets import Secret, Secrets, resolve_all
from handler.config.settings import Settings
from handler.model.errors import SenderError
from handler.web.page.access import PageAccess
from handler.web.responses import error

URL = "https://anneal.example.com"
TARGETS = ("shop-prod", "shop-dev", "infra")
PAGE_SECRETS = {
    "PAGE_KEY": "page-key-0123456789abcdef0123456789abcdef",
    "PROXY": "proxy-secret-0123456789",
    "CLIENT": "client-secret",
    "ADA": "ada-token-0123456789",
    "BOB": "bob-token-0123456789",
    "EVE": "eve-token-0123456789",
}
PAGE = """
page:
  url: https://anneal.example.com
  key: {env: PAGE_KEY}
  proxy: {secret: {env: PROXY}}
  oidc: {issuer: https://login.example.com, clientId: anneal, clientSecret: {env: CLIENT}}
  tokens:
    - {name: ada, secret: {env: ADA}, groups: [platform]}
    - {name: bob, secret: {env: BOB}, groups: [developers]}
    - {name: eve, secret: {env: EVE}}
  roles:
    - {role: operator, groups: [platform], users: [root@example.com], logs: ["*"]}
    - {role: viewer, groups: [developers], targets: ["shop-*"], logs: [shop-dev]}
"""


def page_settings(text: str = PAGE) -> Settings:
    """Read the settings of three targets and a page."""
    targets = "".join(
        f"  - {{name: {name}, repository: {{url: 'https://git.example.com/a.git'}}, namespaces: [shop]}}\n" for name in TARGETS
    )
    return parse(f"apiVersion: anneal.dev/v1alpha1\nkind: Config\n{text}targets:\n{targets}")


def the_page(text: str = PAGE) -> PageSettings:
    """Return the settings of the page alone."""
    found = page_settings(text).page
    assert found
    return found


class Visits:
    """The application, what it counted, and a clock that a test moves; `secrets` may be replaced, as a rotation does."""

    def __init__(self, page: PageSettings | None = None) -> None:
        self.settings = page_settings()
        self.secrets = resolve_all(self.settings, PAGE_SECRETS, needs={"page"})
        self.now = 1_800_000_000.0
        self.failures = 0
        self.acts: list[str] = []
        self.access = PageAccess(page or the_page(), self, self._failed, clock=lambda: self.now)
        self.app = _application(self.access, self.acts.append)

    def page(self) -> Any:
        """Return the secrets that count now."""
        return self.secrets.page()

    def webhook(self, provider: str) -> Any:
        """Return none."""
        return self.secrets.webhook(provider)

    def token(self, candidate: bytes) -> Any:
        """Return none."""
        return self.secrets.token(candidate)

    def rotate(self, **changed: Any) -> None:
        """Replace some of the page's secrets."""
        found = self.secrets.page_secrets
        assert found
        self.secrets = Secrets(page_secrets=replace(found, **changed))

    def _failed(self) -> None:
        self.failures += 1


def another_key() -> Secret:
    """Return a key that isn't the page's."""
    return Secret("another-key-0123456789abcdef0123456789")


def _application(access: PageAccess, act: Callable[[str], None]) -> Flask:
    app = Flask("page-visits")
    for route in access.routes():
        endpoint = f"{route.method} {route.rule}"
        app.add_url_rule(route.rule, endpoint=endpoint, view_func=route.view, methods=[route.method], provide_automatic_options=False)

    def overview() -> Response:
        visitor = access.visitor(request)
        sees = [name for name in TARGETS if visitor.sees(name)]
        response = jsonify(name=visitor.name, way=visitor.way, sees=sees, csrf=access.csrf(visitor), until=visitor.until)
        access.settled(response, visitor)
        return response

    def acting() -> Response:
        visitor = access.visitor(request)
        access.require_csrf(visitor, request)
        act(visitor.name)
        return Response("done")

    app.add_url_rule("/", endpoint="overview", view_func=overview)
    app.add_url_rule("/ui/act", endpoint="act", view_func=acting, methods=["POST"])
    app.register_error_handler(SenderError, error)
    return app
