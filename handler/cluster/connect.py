"""Which cluster, and with which credentials. The first step of every run.

Credentials rotate: the `Authorization` value is asked again every few seconds, a kubeconfig that a store holds is looked at every
`secretsInterval`, and after a 401 everything is loaded anew. An exec plugin or a cloud that hangs is an error after half a minute, and
isn't asked again while it does; who connects to another cluster never waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException

from handler.cluster.kubeconfig import MASKED, Cloud, Held, from_eks, from_files, from_pod, from_text
from handler.config import masking
from handler.config.remote import Fetch, nowhere
from handler.config.settings import Cluster
from handler.model.errors import AnnealError, KubeconfigInvalid, ServerPinned

_ASK_AGAIN = 5.0
"""Seconds an `Authorization` value is kept before the loader is asked whether it expired."""
_PATIENCE = 30.0
"""Seconds that credentials have to come: the vendor's loader gives an exec plugin no limit."""
_HANGS = {
    "": ("an exec plugin hangs", "run its exec plugin by hand to see why, and end the one that hangs"),
    "EKS": ("AWS doesn't answer", "see whether this process reaches the endpoints of EKS and STS"),
}
_coming: dict[str, Future[Any]] = {}
_coming_lock = threading.Lock()
_LOG = logging.getLogger("anneal.cluster")


def _never() -> bool:
    return False


class Connection:
    """The way to one API server: address, trust and credentials, which may rotate. Safe to share between threads.

    `source` says where it comes from, for messages; `load` returns a fresh configuration each time it is called; `changed` tells, at
    once and only once a change, that it would return another than the last one.
    """

    def __init__(self, load: Callable[[], Any], source: str, changed: Callable[[], bool] = _never) -> None:
        self.source = source
        self._load = load
        self._changed = changed
        self._lock = threading.Lock()
        self._pools: dict[int, urllib3.PoolManager] = {}
        self._failed: tuple[float, AnnealError] | None = None
        self.generation = 0
        self._authorization = ""
        self._take(load())

    @property
    def host(self) -> str:
        """The API server's address, without a slash at its end."""
        return self._host

    def pool(self, size: int) -> urllib3.PoolManager:
        """Return the keep-alive pool of this size; callers of one size share it."""
        with self._lock:
            if size not in self._pools:
                self._configuration.connection_pool_maxsize = size
                self._configuration.keep_alive = True
                self._pools[size] = RESTClientObject(self._configuration).pool_manager
            return self._pools[size]

    def authorization(self) -> str:
        """Return the `Authorization` header's value, empty with a client certificate."""
        with self._lock:
            if time.monotonic() - self._asked > _ASK_AGAIN:
                self._renew(self._ask_again)
            return self._authorization

    def refresh(self, generation: int) -> None:
        """Load everything anew after a 401 for what was loaded as this `generation`; many threads cause one reload.

        Raises KubeconfigInvalid, ServerPinned, and what the place of the credentials says: SecretUnavailable, AccessDenied,
        ClusterUnavailable.
        """
        with self._lock:
            if self.generation == generation:
                self._renew(lambda: self._take(self._load()))

    def _renew(self, renew: Callable[[], None]) -> None:
        """Renew credentials; a failure is everybody's for a while, so that those who waited for it don't each wait for their own."""
        if self._failed and time.monotonic() - self._failed[0] < _ASK_AGAIN:
            raise type(self._failed[1])(*self._failed[1].problems)
        try:
            renew()
        except AnnealError as error:
            self._failed = time.monotonic(), error
            raise
        self._failed = None

    def _take(self, configuration: Any) -> None:
        self._configuration = configuration
        self._host = str(configuration.host).rstrip("/")
        self.generation += 1
        self._pools = {}
        self._ask()

    def _ask_again(self) -> None:
        """Ask for the `Authorization` value; where the place of the credentials holds others now, take those if they can be used."""
        if self._changed():
            try:
                self._take(self._load())
            except AnnealError as error:
                fields = {"cluster": self.source, "seen": str(error)}
                _LOG.warning("a kubeconfig can't be renewed; the one before still counts", extra={"fields": fields})
            else:
                return
        self._ask()

    def _ask(self) -> None:
        try:
            key = _in_time(lambda: self._configuration.get_api_key_with_prefix("BearerToken"), self.source, "token")
        except (ConfigException, OSError, ValueError) as error:
            raise KubeconfigInvalid.of(self.source, f"its token can't be renewed: {type(error).__name__}") from error
        value = str(key or "").strip()
        if value and value != self._authorization:
            masking.learn(value.partition(" ")[2] or value, seconds=MASKED)
        self._authorization = value
        self._asked = time.monotonic()


def connect(
    cluster: Cluster,
    *,
    kubeconfig: str = "",
    context: str = "",
    environ: Mapping[str, str],
    fetch: Fetch = nowhere,
    interval: float = 60.0,
    cloud: Cloud | None = None,
) -> Connection:
    """Find the cluster: the flag, the target's own, KUBECONFIG, ~/.kube/config, the pod's service account.

    Args:
        cluster: the target's settings.
        kubeconfig: the `--kubeconfig` flag; like KUBECONFIG it may name several files separated by colons.
        context: the `--context` flag.
        environ: the environment (KUBECONFIG, HOME, KUBERNETES_SERVICE_HOST and _PORT, and what `cluster.kubeconfig.env` names).
        fetch: asks the store that holds a kubeconfig.
        interval: seconds after which such a store is asked again.
        cloud: describes clusters of EKS and signs in to them.

    Raises:
        KubeconfigInvalid: nothing found, or what was found can't be used.
        SecretUnavailable: the secret that holds the kubeconfig can't be read.
        AccessDenied, ClusterUnavailable: the cloud refuses to tell about the cluster, or can't be asked.
        ServerPinned: `cluster.server` pins another address.
    """
    chosen = context or cluster.context
    if cluster.eks and cloud and not kubeconfig:
        eks, described_by = cluster.eks, cloud
        return _pinned(lambda: from_eks(eks, described_by), str(eks), cluster.server)
    ref = cluster.kubeconfig
    if ref and not ref.file and not kubeconfig:
        held, source = Held(ref, environ, fetch, interval), _named(f"kubeconfig of {ref}", chosen)
        return _pinned(lambda: from_text(held.read(), chosen, source), source, cluster.server, held.changed)
    files = kubeconfig or _files(cluster, environ)
    if files:
        source = _named(f"kubeconfig {files}", chosen)
        return _pinned(lambda: from_files(files, chosen, source), source, cluster.server)
    if cluster.in_cluster or environ.get("KUBERNETES_SERVICE_HOST"):
        source = "the pod's service account"
        return _pinned(lambda: from_pod(environ, source), source, cluster.server)
    fix = "pass --kubeconfig FILE, set KUBECONFIG, or set cluster.kubeconfig.file of the target"
    raise KubeconfigInvalid.of("cluster", "no kubeconfig was found, and this isn't a pod", fix=fix)


def _named(source: str, context: str) -> str:
    return source + (f", context {context}" if context else "")


def _files(cluster: Cluster, environ: Mapping[str, str]) -> str:
    """Return the kubeconfig files that settings and environment name, or nothing."""
    if cluster.kubeconfig and cluster.kubeconfig.file:
        return cluster.kubeconfig.file
    if cluster.in_cluster:
        return ""
    if environ.get("KUBECONFIG"):
        return environ["KUBECONFIG"]
    home = Path(environ.get("HOME") or "/nonexistent") / ".kube" / "config"
    return str(home) if home.is_file() else ""


def _pinned(load: Callable[[], Any], source: str, server: str, changed: Callable[[], bool] = _never) -> Connection:
    """Make the connection; the pin is checked at every load, so that a swapped kubeconfig is refused too."""

    def checked() -> Any:
        configuration = _in_time(load, source, "credentials")
        if server and _origin(server) != _origin(configuration.host):
            fix = "correct cluster.server of the target, or use the right kubeconfig"
            raise ServerPinned.of(source, f"points to {configuration.host}, but cluster.server pins {server}", fix=fix)
        return configuration

    return Connection(checked, source, changed)


def _in_time(load: Callable[[], Any], source: str, what: str) -> Any:
    """Return what a loader gives, which may start an exec plugin. While one hangs, others wait for it instead of starting their own.

    Raises KubeconfigInvalid when it takes too long, and whatever the loader raises.
    """
    with _coming_lock:
        future = _coming.get(source + what)
        if future is None or future.done():
            future = _coming[source + what] = Future()
            threading.Thread(target=_settle, args=(future, load), name=what, daemon=True).start()
    try:
        return future.result(_PATIENCE)
    except TimeoutError:
        hangs, fix = _HANGS["EKS" if source.startswith("EKS ") else ""]
        raise KubeconfigInvalid.of(source, f"its {what} didn't come in {_PATIENCE:g} s: {hangs}", fix=fix) from None


def _settle(future: Future[Any], load: Callable[[], Any]) -> None:
    try:
        future.set_result(load())
    except BaseException as error:  # noqa: BLE001 - it is raised again by whoever waits
        future.set_exception(error)


def _origin(url: str) -> tuple[str, str, int, str]:
    """Return what makes two server addresses the same."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return parts.scheme, (parts.hostname or "").lower(), port, parts.path.rstrip("/")
