"""A real Prometheus on loopback that scrapes a small exporter every second: what checks of rollouts ask. Used by tests.

Prometheus comes from Debian's package, which is unpacked and not installed; it is an ordinary process, ended by its own id.

    with Exporter() as exporter, PrometheusHost(exporter.address) as host:
        exporter.set("errors", 0.002, track="canary")
        host.wait('errors{track="canary"}', 0.002)
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections import deque
from pathlib import Path
from typing import IO, Any

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from infra import ports
from infra.debian import unpacked
from infra.patience import PATIENCE


class Exporter:
    """What Prometheus scrapes: gauges, set by the test. `address`: host:port."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._gauges: dict[str, Gauge] = {}
        self._server, self._thread = start_http_server(0, addr="127.0.0.1", registry=self._registry)

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._server.server_port}"

    def set(self, name: str, value: float, **labels: str) -> None:
        """Expose a value from the next scrape on; all series of a name have the same labels."""
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, "set by a test", sorted(labels), registry=self._registry)
        (self._gauges[name].labels(**labels) if labels else self._gauges[name]).set(value)


class PrometheusHost:
    """A Prometheus that scrapes these addresses. `url`: where it answers; after `stop` it may be started again at the same place.

    `web`: a web configuration file (TLS, basic authentication), as its documentation has it; `authority`: PEM file of who signed it.
    """

    def __init__(self, *scraped: str, web: Path | None = None, authority: Path | None = None) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="prometheus-host-"))
        self._scraped, self._web, self._authority = scraped, web, authority
        self._port = ports.keep()
        self._listen = f"127.0.0.1:{self._port.getsockname()[1]}"
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> PrometheusHost:
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._port.close()
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"{'https' if self._web else 'http'}://{self._listen}"

    def start(self) -> PrometheusHost:
        """Start it, and wait until it is ready. Its life is bound to the thread that calls. Raises RuntimeError, with its last words."""
        program = unpacked("prometheus", ("prometheus",)) / "usr/bin/prometheus"
        options = [f"--config.file={self._configuration()}", f"--storage.tsdb.path={self.root / 'data'}"]
        options += [f"--web.listen-address={self._listen}", "--query.lookback-delta=10s", "--scrape.discovery-reload-interval=1s"]
        options += [f"--web.config.file={self._web}"] if self._web else []
        bound = ["setpriv", "--pdeathsig", "KILL"]  # a killed test leaves none behind
        self._process = subprocess.Popen([*bound, str(program), *options], cwd=self.root, stderr=subprocess.PIPE, text=True)
        ready, said = threading.Event(), deque[str](maxlen=20)
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr, ready, said), daemon=True)
        self._reader.start()
        if not ready.wait(PATIENCE) or self._process.poll() is not None:
            self.stop()
            raise RuntimeError("Prometheus isn't ready; it said:\n" + "".join(said))
        return self

    def stop(self) -> None:
        """End it; its data stays for the next start."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        process.wait()
        if self._reader:
            self._reader.join()

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the series that a query finds now: `metric` and `value`."""
        request = urllib.request.Request(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}")  # noqa: S310 - our own
        context = None
        if self._authority:
            import ssl  # noqa: PLC0415 - only hosts with TLS

            context = ssl.create_default_context(cafile=str(self._authority))
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:  # noqa: S310 - the same
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def wait(self, query: str, value: float | None) -> None:
        """Return when a query's first series has this value, or none is found (None). Raises TimeoutError."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.ask(query)
            seen = float(found[0]["value"][1]) if found else None
            if seen == value:
                return
            if time.monotonic() > end:
                raise TimeoutError(f"{query} is {seen}, not {value}, for {PATIENCE:g} s")
            time.sleep(0.05)

    def _configuration(self) -> Path:
        jobs = [{"job_name": "test", "static_configs": [{"targets": list(self._scraped)}]}]
        file = self.root / "prometheus.yml"
        file.write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}))
        return file

    def _read(self, stream: IO[str], ready: threading.Event, said: deque[str]) -> None:
        """Follow its log to the end: when it is ready."""
        with stream:
            for line in stream:
                said.append(line)
                if "ready to receive web requests" in line:
                    ready.set()
        ready.set()
