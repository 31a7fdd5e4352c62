"""What programs made with the `kubernetes` package hand over: its models as JSON, its configured client as a connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from handler.cluster.connect import ClusterConnection
from handler.cluster.kubeconfig import Loaded
from handler.cluster.pool import pooled
from handler.model.errors import KubeconfigInvalid

_CLASS = re.compile(r"V(\d+)((?:alpha|beta)\d+)?([A-Z]\w*)")


_VERIFY = "let its configuration have verify_ssl = True, and its authority in ssl_ca_cert"


def is_model(value: Any) -> bool:
    """Return whether a value is an object of the `kubernetes` package's models."""
    return type(value).__module__.startswith("kubernetes.client.models.")


def body_of(value: Any) -> Any:
    """Return a value of one's own, in which models are dicts and tuples lists."""
    if is_model(value):
        return _serializer().sanitize_for_serialization(value)
    if isinstance(value, Mapping):
        return {key: body_of(inner) for key, inner in value.items()}
    return [body_of(inner) for inner in value] if isinstance(value, list | tuple) else value


@lru_cache(1)
def _serializer() -> Any:
    from kubernetes.client import ApiClient, Configuration  # noqa: PLC0415 - a program that has its models has loaded it

    return ApiClient(Configuration())


def version_and_kind(value: Any) -> tuple[str, str] | None:
    """Return what a model's class says of itself: `V1Deployment` -> (`v1`, `Deployment`); None: `CoreV1Event` and others name no kind."""
    found = _CLASS.fullmatch(type(value).__name__)
    return (f"v{found[1]}{found[2] or ''}", found[3]) if found else None


def connection_of(client: Any) -> ClusterConnection:
    """Return a connection with what an `ApiClient` or a `Configuration` holds: address, authority, certificate, token or password, proxy.

    The token is asked for again as they do it (`refresh_api_key_hook`). Raises KubeconfigInvalid: it has headers, which aren't taken over.
    """
    configuration, source = getattr(client, "configuration", client), f"the kubernetes.client.{type(client).__name__}"
    headers = sorted(name for name in getattr(client, "default_headers", {}) if name != "User-Agent")
    if headers:
        fix = "hand over its configuration alone: Client.of(api_client.configuration)"
        raise KubeconfigInvalid.of(source, f"sends {', '.join(headers)} of its own, which wouldn't be sent here", fix=fix)

    def authorization() -> str:
        bearer = str((configuration.auth_settings().get("BearerToken") or {}).get("value") or "")
        return bearer or (str(configuration.get_basic_auth_token() or "") if configuration.username else "")

    def load() -> Loaded:
        authority = configuration.ssl_ca_cert or ""
        if not authority and configuration.ca_cert_data:
            data = configuration.ca_cert_data
            authority = data if isinstance(data, bytes) else data.encode()
        verified = bool(configuration.verify_ssl)
        tls = pooled(authority, configuration.cert_file or "", configuration.key_file or "", verify=verified)
        if configuration.tls_server_name:
            tls["server_hostname"] = configuration.tls_server_name
        return Loaded(configuration.host.rstrip("/"), tls, authorization, configuration.proxy, verified, _VERIFY)

    return ClusterConnection(load, source)
