"""Translates refusals of the API server and connection failures into our errors. Pure.

The class says who must act: 401 and RBAC's 403 the operator (with the least rule), another 4xx the author, also an admission plugin's 403;
a full quota the operator. 409 is planned again; 429, 5xx and connection failures are retried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import urllib3.exceptions

from handler.cluster.quoted_values import about_a_secret, without_values
from handler.model.advice import advice
from handler.model.connection_failure import tls_reason, words
from handler.model.errors import (
    AccessDenied,
    AnnealError,
    ApiRefused,
    ClusterUnavailable,
    FieldCause,
    KubeconfigInvalid,
    Moved,
    NotReady,
    QuotaExceeded,
)
from handler.model.names import Identity, kubectl
from handler.model.quotation import quoted

RETRIED = frozenset({429, 500, 502, 503, 504})  # statuses that may be different next time

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_RBAC = re.compile(r'cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?')
_FORBIDDEN = re.compile(r'(?:^|forbidden: )User "[^"]*" cannot ')
"""An authorizer's words; admission has its own."""
_IMPERSONATE = (
    'add to its Role in the ServiceAccount\'s namespace: {apiGroups: [""], resources: ["serviceaccounts"], verbs: ["impersonate"]}'
)
_OF_SECRETS = re.compile(r'[\w.]+(?: "[^"]*")? is forbidden: User "[^"]*" cannot \S+ resource "[^"]+" in API group "[^"]*"[^\n]*')
"""RBAC's messages don't quote an object's content, so they may be shown for a Secret, too."""
_ANONYMOUS = 'User "system:anonymous" '  # the API server's name for an unauthenticated client
_GRANT = "is attempting to grant RBAC permissions not currently held"
_STRUCTURE = re.compile(r"failed to (?:create typed patch|convert new) object \(")
"""Server-side apply answers a body of the wrong shape with a 500 without reason; it is the author's, and never different next time."""
_UNCONVERTED = re.compile(
    r"failed to (?:prune fields: failed to convert|convert (?:old|new) object: )"
    r"|\.\S+: field not declared in schema$|request to convert CR to an invalid group/version"
)
"""The same where another entry of managedFields has an API version that lacks a field or isn't served any more."""
_CALL = re.compile(r'failed calling webhook "([a-z0-9.-]+)": ')
_QUOTA = re.compile(r"exceeded quota: (\S+), requested: .*|insufficient quota to (?:consume|match these scopes): .*")
"""Messages of the quota admission hold names and numbers, so they may be shown for a Secret, too."""
_QUOTA_UNKNOWN = "status unknown for quota"  # the same plugin's message about a quota that its controller hasn't counted yet


@dataclass(frozen=True, slots=True)
class RequestPlace:
    """What a URL path names. `resource` is the plural, `name` empty for a collection."""

    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`deployments.apps/shop/api`: used where the kind isn't known."""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return "/".join(part for part in (kind, self.namespace, self.name) if part)

    @property
    def secret(self) -> bool:
        """Whether the server's messages may quote secret values."""
        return self.resource == "secrets" and not self.group


def place_of(path: str) -> RequestPlace:
    """Read a path such as `/apis/apps/v1/namespaces/shop/deployments/api`."""
    parts = path.strip("/").split("/")
    grouped = parts[0] == "apis"
    group = parts[1] if grouped and len(parts) > 1 else ""
    rest = parts[3:] if grouped else parts[2:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource, name = (*rest, "", "")[:2]
    return RequestPlace(group, resource or path, namespace, name)


class Crossed(urllib3.exceptions.ProtocolError):
    """A keep-alive connection brought the answer to another request."""


def unreachable(error: Exception, host: str, method: str, subject: str) -> AnnealError:
    """Translate a connection failure: no answer, or half of one."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        reason = tls_reason(error)
        message = f"the certificate of {host} isn't trusted" + (f" ({reason})" if reason else "")
        return KubeconfigInvalid.of(host, message, fix="put its authority into the kubeconfig's certificate-authority-data")
    if isinstance(error, urllib3.exceptions.LocationValueError):
        return KubeconfigInvalid.of(host, "isn't a URL", fix="correct the kubeconfig's server")
    seen = "the connection brought the answer to another request" if isinstance(error, Crossed) else words(error)
    return ClusterUnavailable.of(subject, f"{method} got no answer from {host}: {seen or type(error).__name__}")


def never_sent(error: Exception) -> bool:
    """Return whether the request can't have reached the server: the connection wasn't made."""
    return isinstance(error, (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.ProxyError))


def refused(status: int, body: Any, method: str, path: str, subject: str, sent: bytes | None = None, unsigned: str = "") -> AnnealError:
    """Translate an answer of 300 or more. `body`: the parsed Status, or a proxy's; `subject`: the object in messages.

    `sent`: the request's body, whose sensitive values are masked. `unsigned`: the way out where it carried no credentials.
    """
    place = place_of(path)
    reason = str(body.get("reason") or "") if isinstance(body, dict) else ""
    said, shown = _said(body, place, status, sent)
    if status < 400:
        return KubeconfigInvalid.of(subject, f"the server answers {status}, a redirect", fix="correct the kubeconfig's server")
    if unsigned and (status == 401 or (status == 403 and _ANONYMOUS in _message(body))):
        return AccessDenied.of(subject, f"{status} for {method}; credentials: none are configured", fix=unsigned)
    if status in (401, 403):
        denied = _denied(status, body, place, method, subject, shown)
        denied.said = said
        return denied
    misshapen = status == 500 and bool(_STRUCTURE.match(_message(body)))
    if misshapen:
        status, reason = 422, "Invalid"
    if status == 500 and _UNCONVERTED.match(_message(body)):
        status, reason = 422, ApiRefused.UNCONVERTED
    if status in RETRIED:
        unavailable = ClusterUnavailable.of(subject, f"{method} answered {status}: {shown}")
        unavailable.answered = f"{method} answered {status}"
        unavailable.webhook = _webhook(body) if (status, reason) == (500, "InternalError") else ""
        return unavailable
    if status == 409 or any(cause.get("field") == "metadata.uid" for cause in _causes(body)):
        moved = Moved.of(subject, f"{method} answered {status}: {shown}")  # 422 on the uid: another object of the same name
        moved.reason = reason
        return moved
    error = _api_refused(subject, shown, status, reason)
    error.said, error.misshapen = said, misshapen
    error.causes = () if place.secret else tuple(_field_causes(body))
    return error


def _webhook(body: Any) -> str:
    """Return the webhook whose call failed: its one cause says so, and the message. The API server begins that of a denial otherwise."""
    said = [str(cause.get("message") or "") for cause in _causes(body)]
    match = _CALL.match(said[0]) if [_message(body)] == [f"Internal error occurred: {each}" for each in said] else None
    return match[1] if match else ""


def _field_causes(body: Any) -> Iterator[FieldCause]:
    for cause in _causes(body):
        yield FieldCause(*(str(cause.get(key) or "") for key in ("field", "reason", "message")))


def _api_refused(subject: str, said: str, status: int, reason: str) -> ApiRefused:
    error = ApiRefused.of(subject, said)
    error.status, error.reason = status, reason
    return error


def _denied(status: int, body: Any, place: RequestPlace, method: str, subject: str, said: str) -> AnnealError:
    if status == 401:
        return AccessDenied.of(subject, f"401 for {method}: the credentials aren't accepted", fix="renew the kubeconfig's credentials")
    return _over_quota(_message(body), place, subject) or _forbidden(body, place, method, subject, said)


def _forbidden(body: Any, place: RequestPlace, method: str, subject: str, said: str) -> AnnealError:
    """Distinguish RBAC (the operator acts), admission (the author) and a terminating Namespace (retried)."""
    text = _message(body)
    if place.secret and not _OF_SECRETS.fullmatch(text):
        text = ""  # an admission plugin's may quote values
    if any(cause.get("reason") == "NamespaceTerminating" for cause in _causes(body)):
        return NotReady.of(subject, "its Namespace is being deleted")
    if _GRANT in text:
        fix = 'give the identity what it grants, or verb "escalate" on the role and "bind" on the binding'
        return AccessDenied.of(subject, f"403: {quoted(text.splitlines()[0])}", fix=fix)
    found = _RBAC.search(text)
    if found:
        verb, resource, group, namespace = found.groups(default="")
        if verb.startswith("impersonate"):  # a server with KEP-5284 names its constrained verb; the classic rule does as well
            return AccessDenied.of(subject, f"403: {said}", fix=_IMPERSONATE)
        return AccessDenied.of(subject, f"403: {said}", fix=rule_text(verb, group, resource, namespace))
    if isinstance(body, dict) and body.get("kind") == "Status" and not _FORBIDDEN.search(text):
        return _api_refused(subject, said, 403, "Forbidden")
    verb = _VERBS.get(method, "get" if place.name else "list")
    return AccessDenied.of(subject, f"403: {said}", fix=rule_text(verb, place.group, place.resource, place.namespace))


def _over_quota(text: str, place: RequestPlace, subject: str) -> AnnealError | None:
    if _QUOTA_UNKNOWN in text:
        return NotReady.of(subject, f"403: the quota of namespace {place.namespace} isn't counted yet")
    quota = _QUOTA.match(text.partition(" is forbidden: ")[2])
    if quota is None:
        return None
    name = quota.group(1)
    if name is None:
        fix = advice("who owns the quotas allows it: kubectl describe ResourceQuota -n {}; or declare less in git", place.namespace)
        return QuotaExceeded.of(subject, quoted(quota.group()), fix=fix)
    edit = kubectl("edit", Identity("", "ResourceQuota", place.namespace, name))
    fix = advice("who owns the quota makes room: {text}; or declare less in git", edit)
    return QuotaExceeded.of(subject, f"ResourceQuota/{place.namespace}/{name} has no room: {quoted(quota.group())}", fix=fix)


def rule_text(verb: str, group: str, resource: str, namespace: str) -> str:
    """Return the least RBAC rule as one line of YAML."""
    where = f"Role in {namespace}" if namespace else "ClusterRole"
    rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
    return advice("add to its {text}: {yaml}", where, rule)


def _said(body: Any, place: RequestPlace, status: int, sent: bytes | None) -> tuple[str, str]:
    """Return what the server said, without values, and as it is shown."""
    if not isinstance(body, dict) or body.get("kind") != "Status":
        ours = "404: the server knows no such kind" if status == 404 else f"{status}, and the body is no Status"
        return ours, ours
    text = str(body.get("message") or body.get("reason") or status)
    if not place.secret:
        text = without_values(text, sent)
        return text, quoted(text)
    if (status == 403 and _OF_SECRETS.fullmatch(text)) or text == f'namespaces "{place.namespace}" not found':
        return text, quoted(text)
    ours = about_a_secret(body, _causes(body), status)
    return ours, ours


def _message(body: Any) -> str:
    return str(body.get("message") or "") if isinstance(body, dict) else ""


def _causes(body: Any) -> list[dict[str, Any]]:
    details = body.get("details") if isinstance(body, dict) else None
    causes = details.get("causes") if isinstance(details, dict) else None
    return [cause for cause in causes or () if isinstance(cause, dict)]
