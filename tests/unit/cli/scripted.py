"""A server that answers `anneal replay` from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from click.testing import CliRunner, Result

from handler.cli.group import anneal

TOKEN = "canary-replay-token-0123456789"
RUN = "shop.0123456789ab"
QUEUED = {"run": RUN, "target": "shop", "status": "queued", "trigger": "replay", "actor": "ci", "requests": [RUN], "source": "memory"}
ENDED = QUEUED | {
    "status": "ended",
    "outcome": "applied",
    "commit": "a" * 40,
    "message": "1 object written",
    "counts": {"created": 1},
    "problems": [],
    "who": "",
    "code": "",
    "duration": 0.5,
    "changed": ["ConfigMap/shop/a create"],
    "held": None,
    "nextTry": "",
}
TAKEN = {"matched": [{"target": "shop", "reason": "asked for by ci", "run": RUN}], "ignored": [], "run": RUN}
HELD = {
    "id": "h1",
    "reasons": ["deletes 12 of 20"],
    "changes": {"count": 1, "items": [{"action": "prune", "object": "ConfigMap/shop/b", "uid": "u"}]},
    "commit": "a" * 40,
    "since": "",
}
Answer = tuple[int, Any]


def refusal(code: str, error: str) -> dict[str, Any]:
    return {"matched": [], "ignored": [], "run": None, "code": code, "error": error}


@dataclass
class Server:
    """Answers from a script; the last answer of a path again and again. Headers of an answer: a third item."""

    answers: dict[str, list[Any]]
    seen: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    url: str = ""
    handler: type[BaseHTTPRequestHandler] = BaseHTTPRequestHandler


@contextmanager
def scripted() -> Iterator[Server]:
    script = Server({"/replay/shop": [(202, TAKEN)], f"/api/runs/{RUN}": [(200, QUEUED), (200, ENDED)]})

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            script.seen.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
            answers = script.answers.get(self.path) or [(404, refusal("not-found", "no such path"))]
            status, document, *headers = answers.pop(0) if len(answers) > 1 else answers[0]
            sent = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in headers[0].items() if headers else ():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = answer  # noqa: N815 - http.server's names

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    script.handler = Handler
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        script.url = f"http://127.0.0.1:{running.server_port}"
        yield script
        running.shutdown()
        thread.join()


def replay(server: Server, *arguments: str, **environ: str) -> Result:
    given: dict[str, str | None] = {"ANNEAL_CONFIG": None, "ANNEAL_SERVER": server.url, "ANNEAL_TOKEN": TOKEN, "HOME": "/nonexistent"}
    result = CliRunner(env=given | environ).invoke(anneal, ["replay", "shop", *arguments])
    assert TOKEN not in result.output
    return result
