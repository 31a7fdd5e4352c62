"""Who a trusted proxy says is asking.

Law: without its secret nothing that a request says of itself counts; a header that came twice (`web.repeated_headers`) names no person.
"""

from __future__ import annotations

from dataclasses import dataclass

from werkzeug.datastructures import Headers

from handler.config.page_settings import PageProxy
from handler.config.secrets import Secret

LONGEST_NAME = 256
LONGEST = 8190  # gunicorn's own bound of a header; functions have others


class Forged(Exception):
    """A request names a person, or brings a secret, and the secret isn't the proxy's."""


@dataclass(frozen=True, slots=True)
class Named:
    """Who signed in: the name and groups that the proxy or the provider gives."""

    name: str
    groups: tuple[str, ...] = ()


def named(headers: Headers, proxy: PageProxy, secret: Secret) -> Named | None:
    """Return who is asking; None: no person is named, or not by a name that a person can have. Raises Forged."""
    given = headers.get(proxy.secret_header, "")
    if not secret.matches(given.encode("latin-1", "replace")):
        if given or proxy.user_header in headers or proxy.groups_header in headers:
            raise Forged
        return None
    name = _text(headers.get(proxy.user_header, ""))
    groups = _text(headers.get(proxy.groups_header, ""))
    if not name or groups is None or not is_name(name) or "," in name:  # some gateways join what came twice by a comma
        return None
    return Named(name, tuple(group for group in map(str.strip, groups.split(",")) if group))


def is_name(text: str) -> bool:
    """Whether a person can have this name: one line, not too long, nothing invisible."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()


def _text(value: str) -> str | None:
    """Return a header as the UTF-8 that it is, None where it isn't: WSGI hands on its bytes as Latin-1."""
    try:
        text = value.encode("latin-1").decode()
    except UnicodeError:
        return None
    return text if len(value) <= LONGEST and text.isprintable() else None
