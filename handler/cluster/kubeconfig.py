"""Where a cluster's address, trust and credentials stand: kubeconfig files, a secret that holds one, the pod, EKS. One function a place.

`kubernetes.config` reads kubeconfigs, token files, exec plugins and the pod's own service account; nothing typed is used.
"""

from __future__ import annotations

import base64
import contextlib
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import SERVICE_CERT_FILENAME, SERVICE_TOKEN_FILENAME, InClusterConfigLoader
from kubernetes.config.kube_config import KubeConfigMerger

from handler.cluster.exec_plugin import MASKED, Loader, Plugins
from handler.cluster.keys import in_memory, passing
from handler.config import masking
from handler.config.git import SecretRef
from handler.config.remote import Fetch, Remote, nowhere, text_of
from handler.config.secrets import resolve
from handler.config.settings import Eks
from handler.model.errors import KubeconfigInvalid, SecretUnavailable

_Merger: Any = KubeConfigMerger  # the vendor's loaders carry no types
_PodLoader: Any = InClusterConfigLoader
_DATA = ("certificate-authority", "client-certificate", "client-key")
_FILES = (*_DATA, "tokenFile")
_PRIVATE = ("token", "password", "client-key-data", "id-token", "refresh-token", "access-token", "client-secret", "value")
"""Fields that hold credentials; `value`: of an exec plugin's environment."""
MASKED_AGAIN = MASKED / 2
"""Seconds after which credentials that are still used are masked anew."""


class Cloud(Protocol):
    """What knows a cloud's clusters."""

    def describe(self, eks: Eks) -> tuple[str, str]:
        """Return a cluster's address and the PEM of its authority, in base64."""

    def token(self, eks: Eks, *, fresh: bool = False) -> str:
        """Return a token that holds for some minutes more."""


@dataclass(frozen=True, slots=True, repr=False)
class Loaded:
    """What leads to a cluster. `tls`: what a pool gets instead of certificate files; `private`: what may not be shown, as it is now.

    `private` None: whoever makes the credentials masks them. `cluster`: its name in the kubeconfig.
    """

    configuration: Any
    tls: Mapping[str, Any]
    private: Callable[[], Iterable[str]] | None
    cluster: str = ""

    def __repr__(self) -> str:
        return "Loaded(***)"

    def mask(self, *values: str) -> None:
        """Have every log hide the credentials for a while, and these values."""
        if self.private:
            masking.learn(*values, *self.private(), seconds=MASKED)


@dataclass(frozen=True, slots=True)
class SecretStore:
    """Where kubeconfigs that are secrets are kept. `fetch` asks it; `interval`: seconds after which it is asked again."""

    fetch: Fetch = nowhere
    interval: float = 60.0


class Held:
    """A kubeconfig that is the value of a secret reference. What its store says is looked at now and then, and never waited for."""

    def __init__(self, ref: SecretRef, environ: Mapping[str, str], store: SecretStore) -> None:
        self._ref, self._environ, self._store = ref, environ, store
        self._remote: Remote | None = None
        self._read = self._taken = self._waiting = self._tried = ""
        self._again = 0.0

    def read(self) -> str:
        """Return the text that a change has brought, else what the place holds at this moment. Raises SecretUnavailable."""
        if self._waiting:
            self._read, self._waiting = self._waiting, ""
            return self._read
        remote = Remote([self._ref], self._store.fetch, self._store.interval, masked=False)
        self._read = resolve(self._ref, self._environ, remote).reveal()
        self._remote = remote
        return self._read

    def taken(self) -> None:
        """Hear that what was read is in use."""
        self._taken = self._read

    def changed(self) -> bool:
        """Tell that the store holds another text than is in use, of each text once an interval; asks the store, but waits for nothing."""
        if self._remote is None or not self._ref.remote:
            return False
        self._remote.renew(patience=0)
        try:
            text = text_of(self._ref, self._remote)
        except SecretUnavailable:
            return False
        now = time.monotonic()
        if not text or text == self._taken or (text == self._tried and now < self._again):
            return False
        self._waiting = self._tried = text
        self._again = now + self._store.interval
        return True


def from_files(files: str, context: str, source: str, *, terminal: bool = False) -> Loaded:
    """Load kubeconfig files; refreshed OIDC tokens are written back, as kubectl does. Raises KubeconfigInvalid.

    `terminal`: its exec plugins may speak to a person (`handler.cluster.exec_plugin`).
    """
    chosen = f" --context {shlex.quote(context)}" if context else ""
    plugins = Plugins(source, f"KUBECONFIG={shlex.quote(files)} kubectl{chosen} version", terminal)

    def load() -> tuple[Any, Any]:
        merger = _Merger(files)
        if merger.config is None:
            raise KubeconfigInvalid.of(source, "there is no such file", fix="pass --kubeconfig FILE or correct the path")
        return Loader(
            plugins=plugins,
            config_dict=merger.config,
            active_context=context or None,
            config_base_path=None,
            config_persister=merger.save_changes,
        ), merger.config.value

    return _configured(load, source)


def at_address(server: str, loaded: Loaded | None = None) -> Loaded:
    """Return what leads to this address with the trust and credentials of what was loaded; without any, where nothing was (client-go)."""
    found = loaded or Loaded(Configuration(), {}, lambda: ())
    if server:
        configuration = found.configuration
        renew = configuration.refresh_api_key_hook

        def renewed(given: Any) -> None:
            if renew:
                renew(given)  # sets the kubeconfig's own address, too
            given.host = server

        configuration.host, configuration.refresh_api_key_hook = server, renewed
    return found


def from_text(text: str, context: str, source: str, *, terminal: bool = False) -> Loaded:
    """Load a kubeconfig that lies in no directory, so that it can't name files relative to one. Raises KubeconfigInvalid."""
    plugins = Plugins(source, "anneal doctor", terminal)

    def load() -> tuple[Any, Any]:
        document = yaml.safe_load(text)
        if not isinstance(document, dict):
            raise KubeconfigInvalid.of(source, "holds no kubeconfig", fix="its value is the whole text of a kubeconfig file")
        loader = Loader(plugins=plugins, config_dict=document, active_context=context or None, config_base_path="")
        _check_paths(loader, document, source)
        return loader, document

    return _configured(load, source)


def from_eks(eks: Eks, cloud: Cloud) -> Loaded:
    """Ask a cloud for a cluster, and sign in by tokens that it makes anew in time.

    Raises KubeconfigInvalid, AccessDenied, ClusterUnavailable.
    """
    server, authority = cloud.describe(eks)
    if not server.startswith("https://"):  # the token would be anybody's
        raise KubeconfigInvalid.of(str(eks), f"its address is {server[:100]!a}, which doesn't begin with https://")
    named = {"name": eks.cluster}
    document = {
        "current-context": eks.cluster,
        "contexts": [{**named, "context": {"cluster": eks.cluster, "user": eks.cluster}}],
        "clusters": [{**named, "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{**named, "user": {"token": _token(eks, cloud, fresh=True)}}],
    }
    plugins = Plugins(str(eks), "anneal doctor")  # it names none
    loaded = _configured(lambda: (Loader(plugins=plugins, config_dict=document, config_base_path=""), document), str(eks), masked=False)

    def renew(present: Any) -> None:
        present.api_key["BearerToken"] = f"Bearer {_token(eks, cloud)}"

    loaded.configuration.refresh_api_key_hook = renew
    return loaded


def _token(eks: Eks, cloud: Cloud, *, fresh: bool = False) -> str:
    """Return a token that a header can hold; without one, requests would go out anonymously."""
    token = cloud.token(eks, fresh=fresh)
    if not re.fullmatch(r"[!-~]+", token):
        raise KubeconfigInvalid.of(str(eks), "its token is empty, or can't be sent in a header")
    return token


def _configured(load: Callable[[], tuple[Any, Any]], source: str, *, masked: bool = True) -> Loaded:
    """Return what a loader makes of its kubeconfig; `load` returns both. `masked`: its credentials are to be hidden from every log."""
    try:
        loader, document = load()
        users = [getattr(user, "value", user) for user in document["users"]]
        private = (lambda: [text for user in users for text in _private(user)]) if masked else None
        masking.learn(*(private() if private else ()), seconds=MASKED)  # before anything is said of them
        configuration = Configuration()
        with passing() as directory:
            loader.load_and_set(configuration)
            tls = in_memory(configuration, directory)
    except ConfigException as error:
        raise KubeconfigInvalid.of(source, short(error), fix="kubectl config view --minify shows what it should be") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise KubeconfigInvalid.of(source, f"isn't YAML{where}") from None  # its context quotes the text
    except RecursionError:
        raise KubeconfigInvalid.of(source, "is nested too deeply") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:  # the loader checks no types
        raise KubeconfigInvalid.of(source, f"can't be read: {type(error).__name__}") from error
    return Loaded(configuration, tls, private, str(loader.current_context["context"].get("cluster", "")))


def _check_paths(loader: Any, document: Any, source: str) -> None:
    """Refuse files named relative to a kubeconfig that lies nowhere."""
    cluster, user = _chosen(loader, document, "cluster"), _chosen(loader, document, "user")
    named = [(field, str(each[field])) for each in (cluster, user) for field in _FILES if each.get(field)]
    command = str((user.get("exec") or {}).get("command", ""))
    for field, path in (*named, *([("exec.command", command)] if "/" in command else [])):
        if not PurePath(path).is_absolute():
            fix = f"write its content into {field}-data" if field in _DATA else "name it by an absolute path"
            raise KubeconfigInvalid.of(source, f"its {field} is the relative path {path}, and a secret lies in no directory", fix=fix)


def _chosen(loader: Any, document: Any, kind: str) -> dict[str, Any]:
    """Return the cluster or user of the present context."""
    name = loader.current_context["context"].get(kind)
    named: Iterator[dict[str, Any]] = (getattr(each, "value", each) for each in document[f"{kind}s"])  # the vendor's merger wraps each
    return next((each.get(kind) or {} for each in named if each["name"] == name), {})


def _private(node: Any) -> Iterator[str]:
    """Yield what may not be shown of the users of a kubeconfig, however deep it stands; keys also as the PEM that is their content."""
    if isinstance(node, list):
        for each in node:
            yield from _private(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, str) and key in _PRIVATE:
                yield value
            else:
                yield from _private(value)
    with contextlib.suppress(ValueError, KeyError, TypeError):
        yield base64.b64decode(node["client-key-data"]).decode()


def from_pod(environ: Mapping[str, str], source: str) -> Loaded:
    """Load the service account that Kubernetes mounts into a pod; its token is re-read every minute."""
    configuration = Configuration()
    try:
        _PodLoader(SERVICE_TOKEN_FILENAME, SERVICE_CERT_FILENAME, environ=environ).load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise KubeconfigInvalid.of(source, short(error), fix="set automountServiceAccountToken: true, or pass a kubeconfig") from error
    return Loaded(configuration, {}, tuple)


def short(error: Exception) -> str:
    """Return a loader's message on one line; nodes it quotes may hold tokens, so only the first 200 characters before any brace."""
    return str(error).split("{", 1)[0].splitlines()[0][:200].rstrip() if str(error) else type(error).__name__
