"""One key of a Secret in the handler's own cluster: where KUBECONFIG, ~/.kube/config or the pod's service account lead."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, SecretUnavailable

DEADLINE = 5.0  # seconds for one GET
NOWHERE = "set KUBECONFIG, or run the handler in a pod that has a service account"


class OwnSecrets:
    """Reads Secrets, one GET each. Safe to share between threads, not across a fork."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._api: Api | None = None

    def __call__(self, ref: SecretRef) -> str:
        """Return the value, decoded. Raises SecretUnavailable."""
        namespace, name, key = ref.kubernetes_secret.split("/", 2)
        try:
            body = self._connected().get(f"/api/v1/namespaces/{namespace}/secrets/{name}", subject=f"Secret/{namespace}/{name}")
        except AnnealError as error:
            raise _unavailable(ref, error, namespace, name) from None
        if body is None:
            raise SecretUnavailable.of(str(ref), "there is no such Secret", fix=advice("kubectl get secret -n {}", namespace))
        data = body.get("data") or {}
        if key not in data:
            keys = ", ".join(sorted(data)) or "none"
            raise SecretUnavailable.of(str(ref), f"has no key {key}; its keys are: {keys}")
        return _text(ref, data[key])

    def _connected(self) -> Api:
        if self._api is None:
            self._api = Api(connect(Cluster(), environ=self._environ), deadline=DEADLINE, silence=DEADLINE)
        return self._api


def _unavailable(ref: SecretRef, error: AnnealError, namespace: str, name: str) -> SecretUnavailable:
    (problem, *_) = error.problems
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get"]}
    denied = isinstance(error, AccessDenied) and problem.message.startswith("403")
    fix = advice("add to a Role in {text}: {yaml}", namespace, rule) if denied else NOWHERE if problem.subject == "cluster" else problem.fix
    return SecretUnavailable.of(str(ref), f"can't be read: {problem.message}", fix=fix)


def _text(ref: SecretRef, value: object) -> str:
    problem = "is not UTF-8 text"
    try:
        return base64.b64decode(str(value), validate=True).decode()
    except binascii.Error:
        problem = "is not base64"
    except UnicodeDecodeError:  # raised from None below: it holds the bytes
        pass
    raise SecretUnavailable.of(str(ref), problem)
