"""Where charts come from in tests: a real registry, real packed charts, a plain HTTP server whose every answer a test may turn bad."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs

import urllib3

from handler.config.git_settings import BasicAuth, SecretRef
from handler.config.renderer_settings import ChartSource
from handler.config.secrets import Reading, Secret, Secrets
from handler.model.outside_inputs import ChartReference
from handler.render.charts.chart_readers import read_index, read_name
from handler.render.sandbox import Sandbox
from handler.source.bounded_connections import Pools
from handler.source.charts.chart_fetcher import ChartFetcher
from handler.source.charts.chart_limits import ChartLimits
from handler.source.charts.oci_registry import ARCHIVE, CONFIG, MANIFEST
from infra.release.tools import binaries as tools
from infra.renderers.build import binaries
from tests.rooms.render.helm_releases import packed as packed_files
from tests.rooms.source.http_server import Listening

ARCHIVED = packed_files({"web/templates/map.yaml": "a chart that says no name"})
PASSWORD = SecretRef(env="CHARTS_PASSWORD")
AUTH = BasicAuth("robot", PASSWORD)
SECRETS = Secrets(git={PASSWORD: Secret("canary-password")})
BASIC = "Basic " + base64.b64encode(b"robot:canary-password").decode()


def helm(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the real helm."""
    environ = {"HOME": str(home), "PATH": ""}
    return subprocess.run([str(binaries() / "helm"), *arguments], env=environ, capture_output=True, text=True, check=False)


def packed(directory: Path, version: str, name: str = "web", value: str = "a") -> Path:
    """Pack a chart and return its archive."""
    chart = directory / f"of-{version}-{value}" / name
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: {version}\n")
    (chart / "templates" / "map.yaml").write_text(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: {value}}}\n"
    )
    done = helm("package", str(chart), "--destination", str(directory / value), home=directory)
    assert done.returncode == 0, done.stderr
    return directory / value / f"{name}-{version}.tgz"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def fetcher(sandbox: Sandbox, *sources: ChartSource, limits: ChartLimits | None = None, secrets: Reading = SECRETS) -> ChartFetcher:
    """A handler's view of its chart sources."""
    pools: dict[tuple[str, str, str], Pools] = {}

    def shared(*key: str) -> Pools:
        return pools.setdefault((key[0], key[1], key[2]), Pools(*key))

    readers = partial(read_index, sandbox), partial(read_name, sandbox)
    return ChartFetcher(sources, secrets, *readers, shared, limits=limits or ChartLimits())


@contextmanager
def real_registry() -> Iterator[str]:
    """A registry of OCI artifacts on loopback, without TLS: go-containerregistry's, in memory. Yields host:port."""
    with subprocess.Popen([tools() / "registry", "-port", "0"], stderr=subprocess.PIPE, text=True) as served:
        try:
            for line in served.stderr or ():
                if found := re.search(r"serving on port (\d+)", line):
                    yield f"127.0.0.1:{found[1]}"
                    break
        finally:
            served.terminate()


def pushed(registry: str, archive: Path) -> None:
    """Push a packed chart below /charts."""
    done = helm("push", str(archive), f"oci://{registry}/charts", "--plain-http", home=archive.parent)
    assert done.returncode == 0, done.stderr


@dataclass
class Reply:
    """One answer. `chunks`: written as they come; without a Content-Length the connection's end ends it."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    chunks: Iterable[bytes] = ()


Answer = Callable[[str, dict[str, str]], Reply]


def body(data: bytes, status: int = 200, **headers: str) -> Reply:
    """Answer with a body of its true length."""
    return Reply(status, {"Content-Length": str(len(data)), **{name.replace("_", "-"): text for name, text in headers.items()}}, [data])


MISSING = body(b"", 404)


@dataclass
class ChartHost(Listening):
    """A server. `answers`: by path, its query cut off, else `otherwise`; `seen`: path and headers of each request; `trust`: speak TLS."""

    answers: dict[str, Reply | Answer] = field(default_factory=dict)
    otherwise: Answer = lambda _path, _headers: MISSING
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    trust: ssl.SSLContext | None = None

    def __enter__(self) -> Self:
        server = _Server(("127.0.0.1", 0), _Handler)
        server.host = self
        if self.trust:
            server.socket = self.trust.wrap_socket(server.socket, server_side=True)
        self._listen(server)
        return self

    @property
    def address(self) -> str:
        return f"{'https' if self.trust else 'http'}://127.0.0.1:{self.port}"

    @property
    def oci(self) -> str:
        return f"oci://127.0.0.1:{self.port}"

    @property
    def authorizations(self) -> list[str]:
        return [headers.get("Authorization", "") for _, headers in self.seen]

    def paths(self) -> list[str]:
        return [path.partition("?")[0] for path, _ in self.seen]

    def reply(self, path: str, headers: dict[str, str]) -> Reply:
        self.seen.append((path, headers))
        found = self.answers.get(path.partition("?")[0], self.otherwise)
        return found if isinstance(found, Reply) else found(path, headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    host: ChartHost

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up on a hostile host: that is the point."""


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        reply = self.server.host.reply(self.path, dict(self.headers))
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for chunk in reply.chunks:
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        pass


def directory(root: Path, *, password: bool = False) -> Answer:
    """Serve the files of a directory."""

    def answer(path: str, headers: dict[str, str]) -> Reply:
        if password and headers.get("Authorization") != BASIC:
            return body(b"", 401, WWW_Authenticate='Basic realm="charts"')
        file = root / path.partition("?")[0].lstrip("/")
        return body(file.read_bytes()) if file.is_file() else MISSING

    return answer


def forwarded(registry: str, realm: str, token: str = "pull-token") -> Answer:
    """Stand before a real registry and want a token of a realm."""

    def answer(path: str, headers: dict[str, str]) -> Reply:
        if headers.get("Authorization") != f"Bearer {token}":
            challenge = f'Bearer realm="{realm}",service="registry",scope="repository:charts/other:pull,push"'
            return body(b"{}", 401, WWW_Authenticate=challenge)
        accept = {"Accept": headers.get("Accept", "*/*")}
        found = urllib3.request("GET", f"http://{registry}{path}", headers=accept, redirect=False)
        return body(found.data, found.status, Docker_Content_Digest=found.headers.get("Docker-Content-Digest", ""))

    return answer


def token_service(token: str = "pull-token", *, password: bool = True) -> Answer:
    """Give out tokens for pulling charts/web, for a password or to all."""

    def answer(path: str, headers: dict[str, str]) -> Reply:
        asked = parse_qs(path.partition("?")[2])
        if password and headers.get("Authorization") != BASIC:
            return body(b"", 401)
        assert asked == {"scope": ["repository:charts/web:pull"], "service": ["registry"]}
        return body(json.dumps({"token": token}).encode())

    return answer


@dataclass
class FakeChart:
    """A chart as a registry offers it; what lies is set by hand."""

    archive: bytes = ARCHIVED
    layers: Sequence[dict[str, object]] | None = None
    config: str = CONFIG

    def layer(self) -> dict[str, object]:
        return {"mediaType": ARCHIVE, "digest": digest(self.archive), "size": len(self.archive)}

    def manifest(self) -> bytes:
        layers = [self.layer()] if self.layers is None else list(self.layers)
        config = {"mediaType": self.config, "digest": digest(b"{}"), "size": 2}
        return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}).encode()

    def answers(self, tag: str = "1.0.0") -> dict[str, Reply | Answer]:
        return {
            f"/v2/charts/web/manifests/{tag}": body(self.manifest()),
            f"/v2/charts/web/blobs/{digest(self.archive)}": body(self.archive),
        }


def web(host: ChartHost, version: str = "1.0.0", **facts: str) -> ChartReference:
    """Refer to the chart `web` of a registry."""
    return ChartReference(f"{host.oci}/charts/web", "", version, **facts)
