"""Loads a cluster's address, trust and credentials: from kubeconfig files, a secret, the pod, EKS."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Protocol

import yaml

from handler.cluster.credentials import Credentials, Plugins
from handler.cluster.kubeconfig_context import KubeconfigContext, KubeconfigDocument, Malformed, of_files, of_text
from handler.cluster.pool import pooled
from handler.config.git_settings import SecretRef
from handler.config.remote_secrets import Fetch, RemoteSecrets, nowhere, text_of
from handler.config.secrets import resolve
from handler.config.settings import Eks
from handler.model.advice import advice
from handler.model.errors import KubeconfigInvalid, SecretUnavailable

if TYPE_CHECKING:
    from handler.cluster.auth_provider import Provider

_DATA = ("certificate-authority", "client-certificate", "client-key")
_FILES = (*_DATA, "tokenFile")
_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_POD_REREAD = 60.0


class Cloud(Protocol):
    """A cloud that describes its clusters."""

    def describe(self, eks: Eks) -> tuple[str, str]:
        """Return a cluster's address and the PEM of its authority, in base64."""

    def token(self, eks: Eks, *, fresh: bool = False) -> str:
        """Return a token that holds for some minutes more."""


def no_authorization() -> str:
    """Return no header: a client certificate signs in, or nothing does."""
    return ""


_SIGN_IN = "kubectl{words} config set-credentials --token=TOKEN -- {}"
_TRUSTING = "kubectl{words} config set-cluster --insecure-skip-tls-verify=false --certificate-authority=FILE --embed-certs -- {}"


@dataclass(frozen=True, slots=True, repr=False)
class Loaded:
    """One loaded kubeconfig context. `tls`: arguments of a pool; `authorization`: returns that header's value.

    `proxy`: None: not configured. `verified`: the server's certificate is checked. `trusting`, `sign_in`: the commands that have it
    checked, and that set the user's credentials.
    """

    host: str
    tls: Mapping[str, Any]
    authorization: Callable[[], str] = no_authorization
    proxy: str | None = None
    verified: bool = True
    trusting: str = ""
    sign_in: str = ""

    def __repr__(self) -> str:
        return "Loaded(***)"


@dataclass(frozen=True, slots=True)
class SecretStore:
    """A store of kubeconfigs in secrets. `fetch` reads one; `interval`: seconds between reads."""

    fetch: Fetch = nowhere
    interval: float = 60.0


class SecretKubeconfig:
    """A kubeconfig in a secret. Changes in its store are polled, and never waited for."""

    def __init__(self, ref: SecretRef, environ: Mapping[str, str], store: SecretStore) -> None:
        self._ref, self._environ, self._store = ref, environ, store
        self._remote: RemoteSecrets | None = None
        self._read = self._taken = self._waiting = self._tried = ""
        self._again = 0.0

    def read(self) -> str:
        """Return the changed text that is pending, else the secret's present value. Raises SecretUnavailable."""
        if self._waiting:
            self._read, self._waiting = self._waiting, ""
            return self._read
        remote = RemoteSecrets([self._ref], self._store.fetch, self._store.interval)
        self._read = resolve(self._ref, self._environ, remote).reveal()
        self._remote = remote
        return self._read

    def taken(self) -> None:
        """Note that the text last read is in use."""
        self._taken = self._read

    def changed(self) -> bool:
        """Return whether the store holds another text than the one in use, once an interval for each text; never waits."""
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
    """Load kubeconfig files; refreshed OIDC tokens are written back. `terminal`: exec plugins may prompt. Raises KubeconfigInvalid."""
    chosen = ["--context", context] if context else []
    plugins = Plugins(source, advice("KUBECONFIG={} kubectl{words} version", files, chosen), terminal)

    def read() -> KubeconfigDocument:
        found = of_files(files)
        if found is None:
            raise KubeconfigInvalid.of(source, "there is no such file", fix="pass --kubeconfig FILE or correct the path")
        return found

    return _configured(read, context, plugins, files=files)


def at_address(server: str, loaded: Loaded | None = None) -> Loaded:
    """Return what was loaded with another address; without trust and credentials where nothing was loaded (as client-go)."""
    found = loaded or Loaded("", pooled("", "", "", verify=True))
    return replace(found, host=server) if server else found


def from_text(text: str, context: str, source: str, *, terminal: bool = False) -> Loaded:
    """Load a kubeconfig without a directory: it can't name relative files. Raises KubeconfigInvalid."""

    def read() -> KubeconfigDocument:
        document = yaml.safe_load(text)
        if not isinstance(document, dict):
            raise KubeconfigInvalid.of(source, "holds no kubeconfig", fix="its value is the whole text of a kubeconfig file")
        return of_text(document)

    return _configured(read, context, Plugins(source, "anneal doctor", terminal))


def from_eks(eks: Eks, cloud: Cloud) -> Loaded:
    """Load a cloud's cluster, with tokens that are renewed in time. Raises KubeconfigInvalid, AccessDenied, ClusterUnavailable."""
    server, authority = cloud.describe(eks)
    if not server.startswith("https://"):  # the token would go out unencrypted
        raise KubeconfigInvalid.of(str(eks), f"its address is {server[:100]!a}, which doesn't begin with https://")
    named = {"name": eks.cluster}
    document = {
        "current-context": eks.cluster,
        "contexts": [{**named, "context": {"cluster": eks.cluster, "user": eks.cluster}}],
        "clusters": [{**named, "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{**named, "user": {"token": _token(eks, cloud, fresh=True)}}],
    }
    plugins = Plugins(str(eks), "anneal doctor")  # it names none
    loaded = _configured(lambda: of_text(document), "", plugins)
    return replace(loaded, authorization=lambda: f"Bearer {_token(eks, cloud)}")


def _token(eks: Eks, cloud: Cloud, *, fresh: bool = False) -> str:
    token = cloud.token(eks, fresh=fresh)
    if not re.fullmatch(r"[!-~]+", token):
        raise KubeconfigInvalid.of(str(eks), "its token is empty, or can't be sent in a header")
    return token


def _configured(read: Callable[[], KubeconfigDocument], context: str, plugins: Plugins, *, files: str = "") -> Loaded:
    source = plugins.source
    try:
        return _loaded(read(), context, plugins, files)
    except Malformed as error:
        raise KubeconfigInvalid.of(source, short(error), fix="kubectl config view --minify shows what it should be") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise KubeconfigInvalid.of(source, f"isn't YAML{where}") from None  # its context quotes the text
    except RecursionError:
        raise KubeconfigInvalid.of(source, "is nested too deeply") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:  # no types were checked
        raise KubeconfigInvalid.of(source, f"can't be read: {type(error).__name__}") from error


def _loaded(document: KubeconfigDocument, name: str, plugins: Plugins, files: str) -> Loaded:
    context = KubeconfigContext.of(document, name)
    if not files:
        _check_paths(context, plugins.source)
    credentials = Credentials(context, plugins, partial(_provider, files, document, name))

    cluster, server = context.cluster, str(context.cluster.get("server")).rstrip("/") if "server" in context.cluster else ""
    verified = not (cluster.get("insecure-skip-tls-verify") if "insecure-skip-tls-verify" in cluster else False)
    trusted = server.startswith("https")
    authority = cluster.content("certificate-authority", cluster.directory) if trusted else ""
    tls = pooled(authority, *(credentials.certificate if trusted else ("", "")), verify=verified)
    if "tls-server-name" in cluster:
        tls["server_hostname"] = cluster.get("tls-server-name")
    proxy = cluster.get("proxy-url") if "proxy-url" in cluster else None
    place = ["--kubeconfig", files] if files and ":" not in files else []
    trusting, sign_in = advice(_TRUSTING, place, context.cluster_name), advice(_SIGN_IN, place, context.user_name)
    return Loaded(server, tls, credentials.authorization, proxy, verified, trusting, sign_in)


def _provider(files: str, document: KubeconfigDocument, name: str) -> Provider:
    from handler.cluster.auth_provider import Provider  # noqa: PLC0415 - few users have one, and it takes a third of a second to load

    return Provider(files, document.fields, name)


def _check_paths(context: KubeconfigContext, source: str) -> None:
    user: Any = context.user.fields if context.user else {}
    named = [(field, str(each[field])) for each in (context.cluster.fields, user) for field in _FILES if each.get(field)]
    command = str((user.get("exec") or {}).get("command", ""))
    for field, path in (*named, *([("exec.command", command)] if "/" in command else [])):
        if not PurePath(path).is_absolute():
            fix = f"write its content into {field}-data" if field in _DATA else "name it by an absolute path"
            raise KubeconfigInvalid.of(source, f"its {field} is the relative path {path}, and a secret lies in no directory", fix=fix)


def from_pod(environ: Mapping[str, str], source: str) -> Loaded:
    """Load the service account that Kubernetes mounts into a pod; its token is re-read every minute. Raises KubeconfigInvalid."""
    try:
        host, token, authority = _pod_host(environ), _PodToken(_POD / "token"), _POD / "ca.crt"
        if not authority.is_file():
            raise Malformed("Service certification file does not exist.")
        if not authority.read_text():
            raise Malformed("Cert file exists but empty.")
    except (Malformed, OSError) as error:
        raise KubeconfigInvalid.of(source, short(error), fix="set automountServiceAccountToken: true, or pass a kubeconfig") from error
    return Loaded(host, pooled(str(authority), "", "", verify=True), token.authorization)


def _pod_host(environ: Mapping[str, str]) -> str:
    names = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
    if any(name not in environ for name in names):
        raise Malformed("Service host/port is not set.")
    host, port = (environ[name] for name in names)
    if not host or not port:
        raise Malformed("Service host/port is set but empty.")
    return f"https://[{host}]:{port}" if ":" in host or "%" in host else f"https://{host}:{port}"


class _PodToken:
    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise Malformed("Service token file does not exist.")
        self._file = file
        self._read()

    def authorization(self) -> str:
        if time.monotonic() >= self._again:
            self._read()
        return f"bearer {self._token}"

    def _read(self) -> None:
        self._token = self._file.read_text()
        if not self._token:
            raise Malformed("Token file exists but empty.")
        self._again = time.monotonic() + _POD_REREAD


def short(error: Exception) -> str:
    """Return a loader's message on one line; nodes it quotes may hold tokens, so only the first 200 characters before any brace."""
    return str(error).split("{", 1)[0].splitlines()[0][:200].rstrip() if str(error) else type(error).__name__
