"""A real smart-HTTP git host on loopback: `git http-backend` behind the standard library's HTTP server.

Used by tests, demo and bench; the handler never runs git. Everything a host can do wrong is a switch: `delay`, `fail`, `filters`,
`any_sha`, `protocol_v2`, `accounts`. `requests` is the log of what was asked, for tests that assert how often.

    with Host() as host:
        work = Work.of(host, "shop")
        work.write("deploy/app.yaml", "kind: ConfigMap")
        sha = work.commit("First")
        work.push()

As a process: `python -m infra.githost --root DIR` prints `GITHOST=<url>` and serves until SIGTERM.
"""

from __future__ import annotations

import argparse
import base64
import hmac
import io
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from infra.gitwork import Work, git_environment, init_repository, run_git

__all__ = ["Host", "Work"]

CHUNK = 65536


@dataclass(frozen=True, slots=True)
class Request:
    """One line of the log. `body` is what was posted, still encoded."""

    method: str
    path: str
    query: str
    status: int
    authorized: bool
    body: bytes


class Host:
    """A git host. Its switches may be turned while it runs; repositories lie below `root`. `certificate`: key and chain in one PEM file."""

    def __init__(self, root: Path | None = None, port: int = 0, certificate: Path | None = None) -> None:
        self._owned = root is None
        self.root = root or Path(tempfile.mkdtemp(prefix="githost-"))
        self.root.mkdir(parents=True, exist_ok=True)
        self.filters = True
        self.any_sha = True
        self.protocol_v2 = True
        self.accounts: dict[str, str] = {}
        self.delay = 0.0
        self.fail = 0
        self.requests: list[Request] = []
        self.connections = 0
        self.answers: dict[tuple[object, ...], tuple[dict[str, str], bytes]] = {}
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.host = self
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Host:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address without a trailing slash."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def url_of(self, name: str) -> str:
        """Return the URL of a repository."""
        return f"{self.url}/{name}.git"

    def start(self) -> Host:
        """Serve in a thread of its own."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop serving; a directory it made itself is removed."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._owned:
            shutil.rmtree(self.root, ignore_errors=True)

    def create(self, name: str) -> Path:
        """Make a bare repository that may be pushed to."""
        bare = self.root / f"{name}.git"
        receives = "[receive]\n\tdenyDeleteCurrent = ignore\n\tautogc = false\n"  # else another process asks after each push
        init_repository(bare, "main", f"[http]\n\treceivepack = true\n{receives}", bare=True)
        return bare

    def settings(self) -> dict[str, str]:
        """Return the switches as git configuration of one request, as git's environment has it."""
        switches = {"allowFilter": self.filters, "allowAnySHA1InWant": self.any_sha, "allowReachableSHA1InWant": self.any_sha}
        rows = {"GIT_CONFIG_COUNT": str(len(switches))}
        for row, (name, on) in enumerate(switches.items()):
            rows |= {f"GIT_CONFIG_KEY_{row}": f"uploadpack.{name}", f"GIT_CONFIG_VALUE_{row}": str(on).lower()}
        return rows


class _Server(ThreadingHTTPServer):
    """Hands the host to its handlers."""

    daemon_threads = True
    host: Host

    def handle_error(self, request: object, client_address: object) -> None:
        """Be silent about clients that hang up in the middle: tests do that on purpose."""


class _Handler(BaseHTTPRequestHandler):
    """One connection: reads a request, runs the backend, streams its answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        """Count a connection."""
        super().setup()
        self.server.host.connections += 1

    def do_GET(self) -> None:
        """Answer `info/refs` and, to dumb clients, nothing."""
        self._answer()

    def do_POST(self) -> None:
        """Answer `git-upload-pack` and `git-receive-pack`."""
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the method it replaces
        """Keep quiet: `Host.requests` is the log."""

    def _answer(self) -> None:
        host = self.server.host
        with tempfile.TemporaryFile() as body:
            self._body = self._spool(body)
            status = self._refusal(host)
            if host.delay:
                time.sleep(host.delay)
            if status:
                self._refuse(status)
            else:
                self._run_backend(host, body)

    def _begin(self, status: int) -> None:
        """Log the request and begin the answer: a client that has read an answer finds its request in the log."""
        path, _, query = self.path.partition("?")
        self.server.host.requests.append(Request(self.command, path, query, status, "Authorization" in self.headers, self._body))
        self.send_response(status)

    def _spool(self, body: IO[bytes]) -> bytes:
        """Keep the whole request body in a file, so that the backend can read and write as it likes, and return it."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body.write(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        else:
            body.write(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        body.seek(0)
        content = body.read()
        body.seek(0)
        return content

    def _refusal(self, host: Host) -> int:
        """Return the status to refuse with, or 0."""
        if host.fail:
            return host.fail
        scheme, _, value = self.headers.get("Authorization", "").partition(" ")
        if not host.accounts:
            return 0
        if scheme.lower() != "basic":
            return 401
        user, _, password = base64.b64decode(value).decode().partition(":")
        return 0 if hmac.compare_digest(host.accounts.get(user, "").encode(), password.encode()) and password else 401

    def _refuse(self, status: int) -> None:
        self._begin(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _run_backend(self, host: Host, body: IO[bytes]) -> None:
        """Run `git http-backend` as CGI (RFC 3875) and stream what it prints; what can't have changed is said again."""
        environment = self._cgi(host)
        asked = self._capabilities(host, environment)
        if asked in host.answers:
            headers, content = host.answers[asked]
            self._stream(headers, io.BytesIO(content))
            return
        with subprocess.Popen([_backend()], env=environment, stdin=body, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as backend:
            assert backend.stdout is not None  # noqa: S101 - it is a pipe
            headers, out = _cgi_headers(backend.stdout), backend.stdout
            if asked and "Status" not in headers:
                content = out.read()
                if backend.wait() == 0:
                    host.answers[asked] = headers, content
                out = io.BytesIO(content)
            if not self._stream(headers, out):
                backend.kill()

    def _capabilities(self, host: Host, environment: dict[str, str]) -> tuple[object, ...]:
        """Return what the answer depends on, if it is protocol 2's to `info/refs`, which names no ref (gitprotocol-v2); else nothing."""
        path, _, query = self.path.partition("?")
        config = host.root / unquote(path).removeprefix("/").removesuffix("/info/refs") / "config"
        asked = (environment.get("GIT_PROTOCOL"), self.command, query)
        if asked != ("version=2", "GET", "service=git-upload-pack") or not config.is_file():
            return ()
        return path, config.read_bytes(), *(value for name, value in environment.items() if name.startswith("GIT_CONFIG_"))

    def _stream(self, headers: dict[str, str], out: IO[bytes]) -> bool:
        """Answer with headers of CGI and what is read; tell whether the client has stayed to the end."""
        self._begin(int(headers.get("Status", "200").split()[0]))
        for name, value in headers.items():
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while data := out.read1(CHUNK):  # type: ignore[attr-defined]  # Popen types its pipe as IO
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
            return False
        return True

    def _cgi(self, host: Host) -> dict[str, str]:
        path, _, query = self.path.partition("?")
        meta = {
            "GIT_PROJECT_ROOT": str(host.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": unquote(path),
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_USER": "git",
        }
        if host.protocol_v2 and "Git-Protocol" in self.headers:
            meta["GIT_PROTOCOL"] = self.headers["Git-Protocol"]
        return git_environment(host.root) | host.settings() | meta


@cache
def _backend() -> str:
    """Return the program itself: `git http-backend` would start it, which costs as much again."""
    return f"{run_git(Path('/'), '--exec-path')}/git-http-backend"


def _cgi_headers(out: IO[bytes]) -> dict[str, str]:
    """Read the header block of a CGI answer."""
    headers = {}
    while line := out.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name] = value.strip()
    return headers


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, required=True, help="directory of the bare repositories")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0: a free one")
    parser.add_argument("--create", action="append", default=[], metavar="NAME", help="make this repository when it isn't there")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with Host(options.root, options.port) as host:
        for name in options.create:
            if not (options.root / f"{name}.git").exists():
                host.create(name)
        print(f"GITHOST={host.url}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
