"""Who is asking for the page, and what he may do: the seam between the ways to sign in and all other parts of the page.

The way of a request: a trusted proxy's headers, else the session in its cookie -> a name and its groups -> rows of the table of roles ->
`Visitor`. Law: roles are looked up anew at each request, so a row or a token that is gone counts for nothing at once; nothing but these
routes and the page's own looks at cookies.
"""

from __future__ import annotations

import hmac
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from flask import Request, Response, request
from werkzeug.datastructures import Headers

from handler.config.page_settings import PageSettings
from handler.config.secrets import Accepting, PageSecrets
from handler.model.errors import Forbidden, SecretUnavailable, SenderError
from handler.triggers.signature import MAX_HEADER
from handler.web.page import proxy_headers
from handler.web.page.proxy_headers import Forged, Named
from handler.web.page.rendering import stranger_html
from handler.web.page.roles import PageSession, Visitor, grants, known_groups
from handler.web.page.sessions import LIFE, PENDING, SESSION, Cookies, digest, form_token, new_id

if TYPE_CHECKING:
    from handler.web.page.oidc import OidcSignIn

_LOG = logging.getLogger("anneal.page")
LOGIN, OIDC, LOGOUT = "/ui/login", "/ui/login/oidc", "/ui/logout"
MOST_FORM = 16 * 1024  # bytes of a form
UNKNOWN = "no such token is known here"
Render = Callable[..., str]


class SignInRequired(SenderError, code="sign-in-required", status=401):
    """The page wants a person to sign in first."""


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A path of the page and what answers it."""

    rule: str
    method: Literal["GET", "POST"]
    view: Callable[[], Response]


class PageAccess:
    """Signs people in and out, and says what they may do. Safe to share between threads.

    `failed` counts a wrong token, or headers without the proxy's secret; `render(name, **values)` makes HTML; `clock`: seconds since the
    epoch.
    """

    def __init__(
        self,
        page: PageSettings,
        secrets: Accepting,
        failed: Callable[[], None],
        *,
        render: Render = stranger_html,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._page, self._secrets, self._failed, self._clock = page, secrets, failed, clock
        self._render = render
        self._cookies = Cookies(page.url.startswith("https://"), clock)
        self._oidc = _oidc(page) if page.oidc else None

    def visitor(self, asked: Request) -> Visitor:
        """Return who is asking. Raises SignInRequired, and Forbidden: a person without any role."""
        stay = self._stay(asked)
        if stay is None:
            raise SignInRequired.of("page", "wants you to sign in", fix=f"sign in at {self._page.url}{LOGIN}")
        found = self._visitor(stay)
        if not found.grants:
            fix = f"ask the operator for a row of `page.roles` that names {stay.name} or one of your groups"
            raise Forbidden.of(stay.name, "has no role here", fix=fix)
        return found

    def csrf(self, visitor: Visitor) -> str:
        """Return the value of the field `csrf` that each form of this visitor carries."""
        return form_token(self._known().key, visitor.stay)

    def require_csrf(self, visitor: Visitor, asked: Request) -> None:
        """Raise Forbidden unless a POST was sent by a form that this visitor was shown on this page."""
        require_own(asked.headers, self._page.url)
        sent = bounded_form(asked).get("csrf", "")
        if not hmac.compare_digest(sent.encode(), self.csrf(visitor).encode()):
            raise Forbidden.of("form", "isn't one that you were shown, or your session has changed", fix="reload the page, and try again")

    def settled(self, response: Response, visitor: Visitor) -> None:
        """Give the browser a cookie, where it has none of this visitor yet: forms are bound to it."""
        if visitor.stay.fresh:
            self._cookies.begin(response, self._known().key, replace(visitor.stay, groups=()))

    def sign_in_path(self, asked: Request) -> str:
        """Return where a visitor signs in who then comes back to what he asked for."""
        query = asked.query_string.decode("latin-1")
        path = own_path(asked.path + (f"?{query}" if query else ""))
        return LOGIN if path == "/" else f"{LOGIN}?next={quote(path, safe='/')}"

    def routes(self) -> tuple[PageRoute, ...]:
        """Return the routes of signing in and out; those of OpenID Connect only where it is configured."""
        found = [
            PageRoute(LOGIN, "GET", self._login_form),
            PageRoute(LOGIN, "POST", self._login),
            PageRoute(LOGOUT, "POST", self._logout),
        ]
        if self._oidc:
            from handler.web.page.oidc import CALLBACK  # noqa: PLC0415 - see `_oidc`

            found += [PageRoute(OIDC, "GET", self._start), PageRoute(CALLBACK, "GET", self._callback)]
        return tuple(found)

    # --- who is asking
    def _stay(self, asked: Request) -> PageSession | None:
        """Return who is asking: by the proxy's headers, else by the session."""
        known = self._known()
        kept, named = self._cookies.session(asked, known.key), self._by_proxy(asked, known)
        if named is None:
            return self._counting(kept, known) if kept else None
        if kept and (kept.way, kept.name) == ("proxy", named.name):
            return replace(kept, groups=named.groups)
        return PageSession(named.name, named.groups, "proxy", new_id(), self._clock(), fresh=True)

    def _by_proxy(self, asked: Request, known: PageSecrets) -> Named | None:
        if not (self._page.proxy and known.proxy):
            return None
        try:
            return proxy_headers.named(asked.headers, self._page.proxy, known.proxy)
        except Forged:
            self._failed()
            fields = {"header": self._page.proxy.secret_header}
            _LOG.warning("a request names a person without the proxy's secret; its headers don't count", extra={"fields": fields})
            return None

    def _counting(self, kept: PageSession, known: PageSecrets) -> PageSession | None:
        """Return a session if what it was begun with still counts, with the groups of now."""
        if kept.way == "oidc" and self._page.oidc:
            bound = self._oidc_binding(known)
            return kept if hmac.compare_digest(kept.binding, bound) else None
        for token, secret in known.tokens if kept.way == "token" else ():
            if token.name == kept.name and hmac.compare_digest(kept.binding, digest(known.key, "token", token.name, secret.reveal())):
                return replace(kept, groups=token.groups)
        return None  # the proxy's cookie is no sign-in: it only binds forms

    def _visitor(self, stay: PageSession) -> Visitor:
        rows = grants(self._page.roles, stay.name, stay.groups)
        return Visitor(stay, rows, stay.issued + LIFE)

    def _known(self) -> PageSecrets:
        found = self._secrets.page()
        if found is None:
            raise SecretUnavailable.of("page.key", "isn't known to this process")
        return found

    def _oidc_binding(self, known: PageSecrets) -> str:
        oidc = self._page.oidc
        return digest(known.key, "oidc", oidc.issuer, oidc.client_id) if oidc else ""

    # --- signing in
    def _login_form(self) -> Response:
        return self._form(200)

    def _login(self) -> Response:
        require_own(request.headers, self._page.url, known=True)
        form = bounded_form(request)
        given, known = form.get("token", "").strip().encode(), self._known()
        found = known.token(given[: MAX_HEADER + 1]) if self._page.tokens else None
        if found is None:
            self._failed()
            _LOG.warning("a sign-in with a wrong token", extra={"fields": {"code": "bad-signature"}})
            return self._form(401, UNKNOWN, form.get("next", ""))
        token, secret = found
        binding = digest(known.key, "token", token.name, secret.reveal())
        return self._begun(PageSession(token.name, (), "token", new_id(), self._clock(), binding), form.get("next", ""))

    def _start(self) -> Response:
        try:
            url, pending = self._way().start(own_path(request.args.get("next", "")))
        except SenderError as error:
            return self._refused(error)
        response = away(url)
        self._cookies.begin_pending(response, self._known().key, pending)
        return response

    def _callback(self) -> Response:
        known = self._known()
        pending = self._cookies.pending(request, known.key)
        try:
            named = self._way().finish(request.args, pending, known.oidc)
        except SenderError as error:
            response = self._refused(error)
        else:
            groups = known_groups(self._page.roles, named.groups)
            session = PageSession(named.name, groups, "oidc", new_id(), self._clock(), self._oidc_binding(known))
            response = self._begun(session, str((pending or {}).get("path")))
        self._cookies.end(response, PENDING)  # what came back once never counts again
        return response

    def _begun(self, session: PageSession, path: str) -> Response:
        """Begin a session, always a new one, and go where it was asked for."""
        response = away(own_path(path))
        if not self._cookies.begin(response, self._known().key, session):
            return self._form(401, "you are in too many groups of the table of roles for a cookie to hold")
        _LOG.info("signed in", extra={"fields": {"actor": session.name, "way": session.way}})
        return response

    def _logout(self) -> Response:
        stay = self._stay(request)
        if stay is not None:  # also without a role
            self.require_csrf(self._visitor(stay), request)
            _LOG.info("signed out", extra={"fields": {"actor": stay.name, "way": stay.way}})
        response = away(LOGIN)
        self._cookies.end(response, SESSION)
        return response

    def _way(self) -> OidcSignIn:
        if self._oidc is None:
            raise SignInRequired.of("page.oidc", "isn't configured")
        return self._oidc

    def _refused(self, error: SenderError) -> Response:
        fields = {"code": error.code, "seen": str(error)}
        _LOG.warning("a sign-in is refused", extra={"fields": fields})
        (problem, *_) = error.problems
        return self._form(error.status, f"{problem.message}; {problem.fix}" if problem.fix else problem.message)

    def _form(self, status: int, problem: str = "", path: str | None = None) -> Response:
        """Return the form to sign in, with what went wrong before."""
        path = own_path(request.args.get("next", "") if path is None else path)
        ways = {"tokens": bool(self._page.tokens), "oidc": self._oidc is not None, "proxy": self._page.proxy is not None}
        html = self._render("login.html", problem=problem, next=path, oidc_path=f"{OIDC}?next={quote(path, safe='/')}", **ways)
        return Response(html, status, mimetype="text/html")


def bounded_form(asked: Request) -> Any:
    """Return the fields of a form, of few bytes. Raises werkzeug's RequestEntityTooLarge (413)."""
    asked.max_content_length = asked.max_form_memory_size = MOST_FORM
    return asked.form


def away(url: str) -> Response:
    """Return an answer that leads elsewhere, by GET."""
    return Response("", 303, {"Location": url}, mimetype="text/plain")


def _oidc(page: PageSettings) -> OidcSignIn:
    """Make what signs in by OpenID Connect; authlib takes a tenth of a second to load, so it is loaded only where it is used."""
    from handler.web.page.identity_provider import IdentityProvider  # noqa: PLC0415 - see above
    from handler.web.page.oidc import OidcSignIn  # noqa: PLC0415 - see above

    if page.oidc is None:
        raise ValueError("page.oidc is missing")
    return OidcSignIn(page, IdentityProvider(page.oidc))


_PATH = re.compile(r"/(?:ui/(?!log(?:in|out)(?:[/?]|$))[A-Za-z0-9_/-]{0,300})?(?:\?[A-Za-z0-9._~/=&:,+%*-]{0,500})?")
_FIX = "open the page at its own address, and try again there"


def require_own(headers: Headers, origin: str, *, known: bool = False) -> None:
    """Raise Forbidden where a browser says that a request comes from elsewhere.

    `origin`: of our page; `known`: where it comes from must be said at all, for nothing else (a form's token) proves it.
    """
    site, sent = headers.get("Sec-Fetch-Site", ""), headers.get("Origin", "")
    if site == "same-origin":
        own = sent in ("", "null", origin)  # `null`: a page whose referrer policy hides it; the browser itself vouches for the site
    elif site in ("", "none"):
        own = sent == origin or (not sent and not known and not site)
    else:
        own = False
    if not own:
        raise Forbidden.of("request", "comes from another site, or its browser doesn't say from where", fix=_FIX)


def own_path(text: str) -> str:
    """Return a place to go to after signing in: a path of the page, as it was asked for; anything else becomes the overview."""
    return text if _PATH.fullmatch(text) else "/"
