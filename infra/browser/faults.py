"""What a browser complains about while pages are open, and what they ask of hosts other than their server.

Law: a page that works leaves none: no error on the console, no exception of a script, no violation of the Content-Security-Policy, no
request to elsewhere.
"""

from __future__ import annotations

import contextlib
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page, Request

_REPORT = "annealReportViolation"
_LISTEN = f"""addEventListener("securitypolicyviolation", event => {_REPORT}(
    `${{event.effectiveDirective}} blocked ${{event.blockedURI}} at ${{event.sourceFile || document.URL}}:${{event.lineNumber}}`))"""
_SETTLED = "() => new Promise(done => setTimeout(done))"


class Faults:
    """The faults of all contexts that are watched, in the order in which they were seen."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._contexts: dict[BrowserContext, str] = {}
        """Each with what a page is asked so that its earlier reports have arrived."""

    def watch(self, context: BrowserContext, *servers: str, scripts: bool = True) -> None:
        """Watch what a context's pages do from now on; they may ask these servers (URLs) and no other host.

        `scripts`: whether the context runs those of pages; without them no timer ends.
        """
        allowed = {_origin(each) for each in servers}

        def requested(request: Request) -> None:
            if _leaves(request.url) and _origin(request.url) not in allowed:
                self._found.append(f"elsewhere: {request.method} {request.url}")

        context.on("request", requested)
        context.on("console", self._said)
        context.on("weberror", lambda error: self._found.append(f"exception: {error.error}"))
        context.on("page", lambda page: page.on("crash", self._crashed))
        context.expose_function(_REPORT, lambda text: self._found.append(f"policy: {text}"))
        context.add_init_script(_LISTEN)
        self._contexts[context] = _SETTLED if scripts else "1"

    def seen(self) -> list[str]:
        """Return the faults until now, once what pages have already reported has arrived."""
        for context, settled in self._contexts.items():
            for page in context.pages:
                with contextlib.suppress(Error):  # it is on its way to another document, or has crashed
                    page.evaluate(settled)
        return list(self._found)

    def expect(self, text: str) -> None:
        """Take out the faults with this text: the test asked for them. Raises AssertionError if there is none."""
        seen = self.seen()
        if not any(text in each for each in seen):
            raise AssertionError(f"no fault with {text!r} was seen; seen: {seen}")
        self._found[:] = [each for each in self._found if text not in each]

    def close(self) -> None:
        """Close the contexts. Raises AssertionError with the faults that no test expected."""
        seen = self.seen()
        for context in self._contexts:
            context.close()
        if seen:
            raise AssertionError("the browser complains:\n" + "\n".join(seen))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            where = message.location
            self._found.append(f"console: {message.text} ({where.get('url', '')}:{where.get('lineNumber', 0)})")

    def _crashed(self, page: Page) -> None:
        self._found.append(f"crash: {page.url}")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _leaves(url: str) -> bool:
    """Tell whether a URL names a host; `data:` and `blob:` are the page's own."""
    return bool(urlsplit(url).netloc) and not url.startswith("blob:")
