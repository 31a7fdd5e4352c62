"""Which cluster, and with which credentials. The first step of every run.

`kubernetes.config` reads kubeconfigs, token files, exec plugins and the pod's own service account; nothing typed is used.
Credentials rotate: the `Authorization` value is asked again every few seconds, and after a 401 everything is loaded anew. An exec
plugin that hangs is an error after half a minute, and isn't started again while it does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import SERVICE_CERT_FILENAME, SERVICE_TOKEN_FILENAME, InClusterConfigLoader
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from handler.config.settings import Cluster
from handler.model.errors import KubeconfigInvalid, ServerPinned

_Merger: Any = KubeConfigMerger  # the vendor's loaders carry no types
_Loader: Any = KubeConfigLoader
_PodLoader: Any = InClusterConfigLoader

_ASK_AGAIN = 5.0
"""Seconds an `Authorization` value is kept before the loader is asked whether it expired."""
_PATIENCE = 30.0
"""Seconds that credentials have to come: the vendor's loader gives an exec plugin no limit."""
_coming: dict[str, Future[Any]] = {}
_coming_lock = threading.Lock()


class Connection:
    """The way to one API server: address, trust and credentials, which may rotate. Safe to share between threads.

    `source` says where it comes from, for messages; `load` returns a fresh configuration each time it is called.
    """

    def __init__(self, load: Callable[[], Any], source: str) -> None:
        self.source = source
        self._load = load
        self._lock = threading.Lock()
        self._pools: dict[int, urllib3.PoolManager] = {}
        self._failed: tuple[float, KubeconfigInvalid] | None = None
        self.generation = 0
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
                self._renew(self._ask)
            return self._authorization

    def refresh(self, generation: int) -> None:
        """Load everything anew after a 401 for what was loaded as this `generation`; many threads cause one reload.

        Raises KubeconfigInvalid.
        """
        with self._lock:
            if self.generation == generation:
                self._renew(lambda: self._take(self._load()))

    def _renew(self, renew: Callable[[], None]) -> None:
        """Renew credentials; a failure is everybody's for a while, so that those who waited for it don't each wait for their own."""
        if self._failed and time.monotonic() - self._failed[0] < _ASK_AGAIN:
            raise KubeconfigInvalid(*self._failed[1].problems)
        try:
            renew()
        except KubeconfigInvalid as error:
            self._failed = time.monotonic(), error
            raise
        self._failed = None

    def _take(self, configuration: Any) -> None:
        self._configuration = configuration
        self._host = str(configuration.host).rstrip("/")
        self.generation += 1
        self._pools = {}
        self._ask()

    def _ask(self) -> None:
        try:
            key = _in_time(lambda: self._configuration.get_api_key_with_prefix("BearerToken"), self.source, "token")
        except (ConfigException, OSError, ValueError) as error:
            raise KubeconfigInvalid.of(self.source, f"its token can't be renewed: {type(error).__name__}") from error
        self._authorization = str(key or "").strip()
        self._asked = time.monotonic()


def connect(cluster: Cluster, *, kubeconfig: str = "", context: str = "", environ: Mapping[str, str]) -> Connection:
    """Find the cluster: the flag, the target's own, KUBECONFIG, ~/.kube/config, the pod's service account.

    Args:
        cluster: the target's settings.
        kubeconfig: the `--kubeconfig` flag; like KUBECONFIG it may name several files separated by colons.
        context: the `--context` flag.
        environ: the environment (KUBECONFIG, HOME, KUBERNETES_SERVICE_HOST and _PORT).

    Raises:
        KubeconfigInvalid: nothing found, or what was found can't be used.
        ServerPinned: `cluster.server` pins another address.
    """
    files = kubeconfig or _files(cluster, environ)
    if files:
        chosen = context or cluster.context
        source = f"kubeconfig {files}" + (f", context {chosen}" if chosen else "")
        return _pinned(lambda: _from_files(files, chosen, source), source, cluster.server)
    if cluster.in_cluster or environ.get("KUBERNETES_SERVICE_HOST"):
        source = "the pod's service account"
        return _pinned(lambda: _from_pod(environ, source), source, cluster.server)
    fix = "pass --kubeconfig FILE, set KUBECONFIG, or set cluster.kubeconfig.file of the target"
    raise KubeconfigInvalid.of("cluster", "no kubeconfig was found, and this isn't a pod", fix=fix)


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


def _pinned(load: Callable[[], Any], source: str, server: str) -> Connection:
    """Make the connection; the pin is checked at every load, so that a swapped kubeconfig is refused too."""

    def checked() -> Any:
        configuration = _in_time(load, source, "credentials")
        if server and _origin(server) != _origin(configuration.host):
            fix = "correct cluster.server of the target, or use the right kubeconfig"
            raise ServerPinned.of(source, f"points to {configuration.host}, but cluster.server pins {server}", fix=fix)
        return configuration

    return Connection(checked, source)


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
        seen = f"its {what} didn't come in {_PATIENCE:g} s: an exec plugin hangs"
        raise KubeconfigInvalid.of(source, seen, fix="run its exec plugin by hand to see why, and end the one that hangs") from None


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


def _from_files(files: str, context: str, source: str) -> Any:
    """Load kubeconfig files; refreshed OIDC tokens are written back, as kubectl does."""
    try:
        merger = _Merger(files)
        if merger.config is None:
            raise KubeconfigInvalid.of(source, "there is no such file", fix="pass --kubeconfig FILE or correct the path")
        loader = _Loader(
            config_dict=merger.config, active_context=context or None, config_base_path=None, config_persister=merger.save_changes
        )
        configuration = Configuration()
        loader.load_and_set(configuration)
    except ConfigException as error:
        raise KubeconfigInvalid.of(source, _short(error), fix="kubectl config view --minify shows what it should be") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise KubeconfigInvalid.of(source, f"isn't YAML{where}") from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:  # the loader checks no types
        raise KubeconfigInvalid.of(source, f"can't be read: {type(error).__name__}") from error
    _check_exec(merger, loader, configuration, source)
    return configuration


def _check_exec(merger: Any, loader: Any, configuration: Any, source: str) -> None:
    """Refuse a silent exec plugin: the loader only logs its failure, and the requests would go out anonymously."""
    name = loader.current_context["context"].get("user")
    users = {user.value["name"]: user.value.get("user") or {} for user in merger.config.value["users"]}
    plugin = users.get(name, {}).get("exec")
    if plugin and not configuration.api_key and not configuration.cert_file:
        command = plugin.get("command", "")
        raise KubeconfigInvalid.of(source, f"its exec plugin {command} gave no credentials", fix=f"run {command} by hand to see why")


def _from_pod(environ: Mapping[str, str], source: str) -> Any:
    """Load the service account that Kubernetes mounts into a pod; its token is re-read every minute."""
    configuration = Configuration()
    try:
        _PodLoader(SERVICE_TOKEN_FILENAME, SERVICE_CERT_FILENAME, environ=environ).load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise KubeconfigInvalid.of(source, _short(error), fix="set automountServiceAccountToken: true, or pass a kubeconfig") from error
    return configuration


def _short(error: Exception) -> str:
    """Return a loader's message on one line; nodes it quotes may hold tokens, so only the first 200 characters before any brace."""
    return str(error).split("{", 1)[0].splitlines()[0][:200].rstrip() if str(error) else type(error).__name__
