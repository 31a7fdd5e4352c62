"""Finds the cluster and its credentials. The first step of every run.

Credentials rotate: `Authorization` is renewed every few seconds, a kubeconfig in a secret every `secretsInterval`, and after a 401
everything. An exec plugin or a cloud that hangs makes its cluster unavailable after half a minute, and isn't started again meanwhile.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import InsecureRequestWarning

from handler.cluster.kubeconfig import (
    Cloud,
    Loaded,
    SecretKubeconfig,
    SecretStore,
    at_address,
    from_eks,
    from_files,
    from_pod,
    from_text,
)
from handler.cluster.pool import pool_of
from handler.config.settings import Cluster
from handler.model.errors import AnnealError, ClusterUnavailable, KubeconfigInvalid, ServerPinned
from handler.model.singleflight import SingleFlight

T = TypeVar("T")
_ASK_AGAIN = 5.0  # seconds for which an `Authorization` value is cached
_PATIENCE = 30.0  # seconds for loading credentials: the vendor's loader gives an exec plugin no limit
_HANGS = {
    "": ("an exec plugin hangs", "run its exec plugin by hand to see why, and end the one that hangs"),
    "text": ("its store doesn't answer", "see whether this process reaches it"),
    "EKS": ("AWS doesn't answer", "see whether this process reaches the endpoints of EKS and STS"),
}
_PORTS = {"https": 443, "http": 80}
_coming: SingleFlight[tuple[str, str, str], Any] = SingleFlight()
_NO_STORE = SecretStore()
_unchecked: set[tuple[str, str]] = set()
_LOG = logging.getLogger("anneal.cluster")


class ClusterConnection:
    """One API server, thread-safe. `source`: its name in messages; `load`: reads it anew; `held`: the kubeconfig's secret."""

    def __init__(self, load: Callable[[], Loaded], source: str, held: SecretKubeconfig | None = None) -> None:
        self.source = source
        self._load = load
        self._held = held
        self._said = ""
        self._lock = threading.Lock()
        self._pools: dict[int, urllib3.PoolManager] = {}
        self._failed: tuple[float, AnnealError] | None = None
        self.generation = 0
        self._authorization = ""
        self._asked = 0.0
        self._take(load())

    @property
    def host(self) -> str:
        """The API server's address, without a slash at its end."""
        return self._host

    def refuse_other_server(self, server: str, pin: str) -> None:
        """Refuse what is meant for another API server. `pin`: what names the server. Raises ServerPinned, KubeconfigInvalid: no address."""
        _refuse_other(self.host, self.source, server, pin, f"use the kubeconfig of {server}, or correct {pin}")

    @property
    def unsigned(self) -> str:
        """The way out where requests carry no credentials; else empty."""
        loaded = self._loaded
        signed = self._authorization or loaded.tls.get("cert_file") or "ssl_context" in loaded.tls
        return "" if signed else f"give its user some, or choose another --context: {loaded.sign_in}" if loaded.sign_in else self.source

    def pool(self, size: int) -> urllib3.PoolManager:
        """Return the keep-alive pool of this size; callers of one size share it."""
        with self._lock:
            if size not in self._pools:
                loaded = self._loaded
                if self._host.startswith("https://") and not loaded.verified:
                    _say_unchecked(loaded.trusting, self._host, self.source)
                try:
                    self._pools[size] = pool_of(self._host, loaded.tls, loaded.proxy, size)
                except (ValueError, OSError) as error:  # a proxy's address is quoted, with its password
                    raise KubeconfigInvalid.of(self.source, f"no connection can be made of it: {type(error).__name__}") from None
            return self._pools[size]

    def authorization(self) -> str:
        """Return the `Authorization` header's value, empty with a client certificate."""
        with self._lock:
            if time.monotonic() - self._asked > _ASK_AGAIN:
                self._renew(self._ask_again)
            return self._authorization

    def refresh(self, generation: int) -> None:
        """Load everything anew after a 401 with this `generation`, once for many threads. Raises as `connect`."""
        with self._lock:
            if self.generation == generation:
                self._renew(lambda: self._take(self._load()))

    def _renew(self, renew: Callable[[], None]) -> None:
        """Renew credentials; a failure is cached for a while, for waiting threads."""
        if self._failed and time.monotonic() - self._failed[0] < _ASK_AGAIN:
            raise type(self._failed[1])(*self._failed[1].problems)
        try:
            renew()
        except AnnealError as error:
            self._failed = time.monotonic(), error
            raise
        self._failed = None

    def _take(self, loaded: Loaded) -> None:
        self._ask(loaded)
        self._loaded = loaded
        self._host = loaded.host.rstrip("/")
        self.generation += 1
        self._pools = {}
        if self._held:
            self._held.taken()

    def _ask_again(self) -> None:
        """Renew the `Authorization` value; a changed kubeconfig in the store is used if it loads."""
        if self._held and self._held.changed():
            try:
                self._take(self._load())
            except AnnealError as error:
                self._say(str(error))
            else:
                self._said = ""
                return
        self._ask(self._loaded)

    def _say(self, seen: str) -> None:
        if seen != self._said:
            fields = {"cluster": self.source, "seen": seen}
            _LOG.warning("a kubeconfig can't be renewed; the one before still counts", extra={"fields": fields})
        self._said = seen

    def _ask(self, loaded: Loaded) -> None:
        try:
            value = _in_time(loaded.authorization, self.source, "token", loaded.host).strip()
        except (OSError, ValueError) as error:
            raise KubeconfigInvalid.of(self.source, f"its token can't be renewed: {type(error).__name__}") from error
        self._authorization, self._asked = value, time.monotonic()


def connect(
    cluster: Cluster,
    *,
    kubeconfig: str = "",
    context: str = "",
    master: str = "",
    environ: Mapping[str, str],
    store: SecretStore = _NO_STORE,
    cloud: Cloud | None = None,
    terminal: bool = False,
) -> ClusterConnection:
    """Find the cluster: the flag, the target's own, KUBECONFIG, ~/.kube/config, the pod's service account.

    `kubeconfig`, `context`: the flags; `master`: an address before that of kubeconfig files. `environ`: KUBECONFIG, HOME,
    KUBERNETES_SERVICE_HOST and _PORT, and `cluster.kubeconfig.env`. `store`: of kubeconfigs in secrets; `cloud`: of EKS clusters;
    `terminal`: exec plugins may prompt. Raises KubeconfigInvalid: none found, or unusable; SecretUnavailable; ServerPinned;
    AccessDenied, ClusterUnavailable: the cloud refuses, or nothing answers in time.
    """
    chosen = context or cluster.context
    if cluster.eks and not kubeconfig:
        eks, described_by = cluster.eks, cloud
        if described_by is None:
            raise KubeconfigInvalid.of(str(eks), "can't be reached here: AWS isn't asked")
        return _pinned(lambda: from_eks(eks, described_by), str(eks), cluster.server)
    ref = cluster.kubeconfig
    if ref and not ref.file and not kubeconfig:
        read = partial(from_text, context=chosen, source=_named(f"kubeconfig of {ref}", chosen), terminal=terminal)
        return _held(SecretKubeconfig(ref, environ, store), read, _named(f"kubeconfig of {ref}", chosen), cluster.server)
    files = kubeconfig or _files(cluster, environ)
    if files:
        source = _named(f"kubeconfig {files}", chosen)
        return _pinned(lambda: at_address(master, from_files(files, chosen, source, terminal=terminal)), source, cluster.server)
    if master:
        return _pinned(lambda: at_address(master), master, cluster.server)
    if cluster.in_cluster or environ.get("KUBERNETES_SERVICE_HOST"):
        source = "the pod's service account"
        return _pinned(lambda: from_pod(environ, source), source, cluster.server)
    fix = "pass --kubeconfig FILE, set KUBECONFIG, or set cluster.kubeconfig.file of the target"
    raise KubeconfigInvalid.of("cluster", "no kubeconfig was found, and this isn't a pod", fix=fix)


def _say_unchecked(fix: str, host: str, source: str) -> None:
    about = re.escape(urlsplit(host).hostname or host)
    warnings.filterwarnings("ignore", rf"Unverified HTTPS request is being made to host '\[?{about}\]?'", InsecureRequestWarning)
    if (source, host) in _unchecked:
        return
    _unchecked.add((source, host))
    fields = {"cluster": source, "server": host, "fix": fix}
    _LOG.warning("the API server's certificate isn't checked (insecure-skip-tls-verify)", extra={"fields": fields})


def _named(source: str, context: str) -> str:
    return source + (f", context {context}" if context else "")


def _files(cluster: Cluster, environ: Mapping[str, str]) -> str:
    if cluster.kubeconfig and cluster.kubeconfig.file:
        return cluster.kubeconfig.file
    if cluster.in_cluster:
        return ""
    if environ.get("KUBECONFIG"):
        return environ["KUBECONFIG"]
    home = Path(environ.get("HOME") or "/nonexistent") / ".kube" / "config"
    return str(home) if home.is_file() else ""


def _held(held: SecretKubeconfig, read: Callable[[str], Loaded], source: str, server: str) -> ClusterConnection:
    def load() -> Loaded:
        text = _in_time(held.read, source, "text", str(id(held)))
        return _in_time(lambda: read(text), source, "credentials", hashlib.sha256(text.encode()).hexdigest())

    return ClusterConnection(_checked(load, source, server), source, held)


def _pinned(load: Callable[[], Loaded], source: str, server: str) -> ClusterConnection:
    return ClusterConnection(_checked(lambda: _in_time(load, source, "credentials"), source, server), source)


def _checked(load: Callable[[], Loaded], source: str, server: str) -> Callable[[], Loaded]:
    def checked() -> Loaded:
        loaded = load()
        _origin(loaded.host, source)  # whether it is an address at all
        if server:
            _refuse_other(
                loaded.host, source, server, "cluster.server", "correct cluster.server of the target, or use the right kubeconfig"
            )
        return loaded

    return checked


def _refuse_other(host: str, source: str, server: str, pin: str, fix: str) -> None:
    if _origin(server, pin) != _origin(host, source):
        raise ServerPinned.of(source, f"points to {host}, but {pin} pins {server}", fix=fix)


def _in_time(load: Callable[[], T], source: str, what: str, of: str = "") -> T:
    """Run a loader, once for concurrent callers of one `source` and `of`. Raises ClusterUnavailable: too slow, and its own."""
    try:
        found: T = _coming.start((source, what, of), load, thread=what).result(_PATIENCE)
    except TimeoutError:
        hangs, fix = _HANGS["EKS" if source.startswith("EKS ") else "text" if what == "text" else ""]
        raise ClusterUnavailable.of(source, f"its {what} didn't come in {_PATIENCE:g} s: {hangs}", fix=fix) from None
    return found


def _origin(url: str, source: str) -> tuple[str, str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        port = 0
    if not port or not parts.hostname or not re.fullmatch(r"[!-~]+", url):  # `urlsplit` leaves out newlines
        fix = "https://HOST or https://HOST:PORT"
        raise KubeconfigInvalid.of(source, f"names a server by {url[:100]!a}, which is no address of one", fix=fix)
    return parts.scheme, parts.hostname.lower(), port, parts.path.rstrip("/")
