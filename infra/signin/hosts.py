"""A real dex and a real oauth2-proxy on loopback, which sign people in to the page. Used by tests. Ordinary processes, ended by their ids.

    with Dex({"anneal": "http://127.0.0.1:8080/ui/login/callback"}) as dex, Oauth2Proxy(dex, url, alpha, port, {}):
        ...

dex has two ways in: `/auth/mock`, who is kilgore@kilgore.trout of the group `authors` without being asked, and a password for
admin@example.com, who has no groups.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from infra.patience import PATIENCE
from infra.signin.build import binaries

CLIENT_SECRET = "client-secret-of-dex"  # noqa: S105 - of nothing but tests
ADMIN, PASSWORD = "admin@example.com", "password"
_HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"  # of that password, from dex' documentation


def kept_port() -> socket.socket:
    """Keep a free port while this socket is open: it never listens, so that a server that asks for this very port may bind it."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept


class _Host:
    """A process that serves HTTP on a port of its own. `url`: where."""

    name, ready = "", ""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="signin-host-"))
        self.environ: Mapping[str, str] = {}
        self._port = kept_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port.getsockname()[1]}"

    def arguments(self) -> list[str]:
        """Return its command line, after writing its files."""
        raise NotImplementedError

    def said(self) -> str:
        """Return its log."""
        return (self.root / "log").read_text()

    def __enter__(self) -> None:
        try:
            command = ["setpriv", "--pdeathsig", "KILL", str(binaries() / self.name), *self.arguments()]  # a killed test leaves none behind
            with (self.root / "log").open("wb") as log:
                self._process = subprocess.Popen(command, cwd=self.root, stdout=log, stderr=log, env={**os.environ, **self.environ})
            self._wait()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait()
        self._port.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while self._process and self._process.poll() is None and time.monotonic() < end:
            try:
                urllib.request.urlopen(f"{self.url}{self.ready}", timeout=PATIENCE).close()  # noqa: S310 - our own
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"{self.name} isn't ready; it said:\n{self.said()}")


class Dex(_Host):
    """An issuer. `redirects`: by a client's id where it may send people back to; the clients' secret is CLIENT_SECRET."""

    name, ready = "dex", "/.well-known/openid-configuration"

    def __init__(self, redirects: Mapping[str, str]) -> None:
        super().__init__()
        self._redirects = redirects

    def __enter__(self) -> Dex:  # type: ignore[override]  # the same, as what it is
        super().__enter__()
        return self

    def arguments(self) -> list[str]:
        """Return its command line, after writing its configuration: JSON is YAML."""
        clients = [{"id": id_, "name": id_, "secret": CLIENT_SECRET, "redirectURIs": [back]} for id_, back in self._redirects.items()]
        settings = {
            "issuer": self.url,
            "storage": {"type": "memory"},
            "web": {"http": self.url.removeprefix("http://")},
            "oauth2": {"skipApprovalScreen": True},
            "enablePasswordDB": True,
            "staticPasswords": [{"email": ADMIN, "hash": _HASH, "username": "admin", "userID": "1"}],
            "connectors": [{"type": "mockCallback", "id": "mock", "name": "mock"}],
            "staticClients": clients,
        }
        file = self.root / "dex.json"
        file.write_text(json.dumps(settings))
        return ["serve", str(file)]


class Oauth2Proxy(_Host):
    """A proxy that signs people in at dex as its client `proxy`, and sends the text `alpha` as its structured configuration.

    `port`: kept for it by `kept_port`; in `alpha` {listen}, {issuer} and {upstream} stand for addresses.
    """

    name, ready = "oauth2-proxy", "/ping"

    def __init__(self, dex: Dex, upstream: str, alpha: str, port: socket.socket, environ: Mapping[str, str]) -> None:
        super().__init__()
        self._port.close()
        self._port, self.environ = port, environ
        self._alpha = alpha
        for name, value in {"listen": self.url.removeprefix("http://"), "issuer": dex.url, "upstream": upstream}.items():
            self._alpha = self._alpha.replace(f"{{{name}}}", value)

    def __enter__(self) -> Oauth2Proxy:  # type: ignore[override]  # the same, as what it is
        super().__enter__()
        return self

    def arguments(self) -> list[str]:
        """Return its command line, after writing its two configurations."""
        key = base64.urlsafe_b64encode(b"k" * 32).decode()
        lines = [f'cookie_secret="{key}"', 'email_domains="*"', 'cookie_secure="false"', f'redirect_url="{self.url}/oauth2/callback"']
        (self.root / "proxy.cfg").write_text("\n".join(lines))
        (self.root / "alpha.yaml").write_text(self._alpha)
        return [f"--config={self.root / 'proxy.cfg'}", f"--alpha-config={self.root / 'alpha.yaml'}"]
