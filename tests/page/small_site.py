"""A site of a few documents on loopback, to see what the harness makes of them."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'"

KINDS = {"js": "text/javascript", "css": "text/css"}


class Site:
    """`pages`: what each path answers; anything else is 404. All of it bears a strict Content-Security-Policy."""

    def __init__(self, pages: dict[str, str]) -> None:
        self.pages = pages

    def __enter__(self) -> Site:
        pages = self.pages

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = pages.get(self.path)
                kind = KINDS.get(self.path.rpartition(".")[2], "text/html")
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Security-Policy", POLICY)
                self.end_headers()
                self.wfile.write(("there is no such page" if body is None else body).encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"


def document(body: str, head: str = "") -> str:
    """Return a document that is in order around some body."""
    head = f'<title>A page</title><link rel="icon" href="/icon">{head}'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main><h1>A page</h1>{body}</main></body></html>'
