"""Whether a request to act comes from a page of ours, and whether a place to go to is one. Pure."""

from __future__ import annotations

import re

from werkzeug.datastructures import Headers

from handler.model.errors import Forbidden

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
