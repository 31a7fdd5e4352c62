"""What the API server said becomes one of our errors, by who must act."""

from __future__ import annotations

from typing import Any

import pytest
import urllib3.exceptions

from handler.cluster.errors import RequestPlace, never_sent, place_of, refused, rule_text, unreachable
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

CONFIG_MAP = "/api/v1/namespaces/shop/configmaps/a"
SECRET = "/api/v1/namespaces/shop/secrets/s"


def status(message: str = "", reason: str = "", causes: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"kind": "Status", "message": message, "reason": reason, "details": {"causes": causes or []}}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/api/v1/namespaces/shop/configmaps/a", RequestPlace("", "configmaps", "shop", "a")),
        ("/api/v1/namespaces/shop", RequestPlace("", "namespaces", "", "shop")),
        ("/api/v1/namespaces", RequestPlace("", "namespaces", "", "")),
        ("/apis/apps/v1/deployments", RequestPlace("apps", "deployments", "", "")),
        ("/apis/apps/v1/namespaces/shop/deployments/api/scale", RequestPlace("apps", "deployments", "shop", "api")),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/a:b", RequestPlace("rbac.authorization.k8s.io", "clusterroles", "", "a:b")),
        ("/apis", RequestPlace("", "/apis", "", "")),
        ("/version", RequestPlace("", "/version", "", "")),
    ],
)
def test_an_api_path_names_group_resource_namespace_and_name(path: str, place: RequestPlace) -> None:
    assert place_of(path) == place


def test_an_api_path_is_shown_as_kubectl_shows_it() -> None:
    assert str(place_of("/apis/apps/v1/namespaces/shop/deployments/api")) == "deployments.apps/shop/api"


RBAC = 'configmaps "a" is forbidden: User "u" cannot patch resource "configmaps" in API group "" in the namespace "shop"'
CONSTRAINED = 'configmaps "a" is forbidden: User "u" cannot impersonate-on:serviceaccount:get resource "configmaps" in API group ""'
GRANT = 'roles "r" is forbidden: user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:\n{…}'
FULL = 'configmaps "a" is forbidden: exceeded quota: tight, requested: configmaps=1, used: configmaps=2, limited: configmaps=2'
COVERED = 'pods "a" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [system-cluster-critical]}]'
UNDECLARED = 'pods "a" is forbidden: failed quota: tight: must specify limits.cpu for: web'
UNCOUNTED = 'pods "a" is forbidden: status unknown for quota: tight, resources: pods'
RANGE = 'pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
TYPED = "failed to create typed patch object (shop/a; /v1, Kind=ConfigMap): .dota: field not declared in schema"
PRUNED = "failed to prune fields: failed to convert merged object to last applied version: .spec.currency: field not declared in schema"
UID = [{"field": "metadata.uid", "message": "field is immutable", "reason": "FieldValueInvalid"}]


@pytest.mark.parametrize(
    ("code", "body", "kind", "told"),
    [
        (301, None, KubeconfigInvalid, "redirect"),
        (400, status("does not support dry run", "BadRequest"), ApiRefused, "does not support dry run"),
        (401, status("Unauthorized", "Unauthorized"), AccessDenied, "401"),
        (
            403,
            status(RBAC, "Forbidden"),
            AccessDenied,
            'add to its Role in shop: {apiGroups: [""], resources: [configmaps], verbs: [patch]}',
        ),
        (403, status(CONSTRAINED, "Forbidden"), AccessDenied, 'resources: ["serviceaccounts"], verbs: ["impersonate"]'),
        (403, status(GRANT, "Forbidden"), AccessDenied, '"escalate"'),
        (
            403,
            status(FULL, "Forbidden"),
            QuotaExceeded,
            "ResourceQuota/shop/tight has no room: “exceeded quota: tight, requested: configmaps=1",
        ),
        (403, status(FULL, "Forbidden"), QuotaExceeded, "; who owns the quota makes room: kubectl edit ResourceQuota/tight -n shop"),
        (403, status(COVERED, "Forbidden"), QuotaExceeded, "kubectl describe ResourceQuota -n shop"),
        (403, status(UNDECLARED, "Forbidden"), ApiRefused, "must specify limits.cpu"),
        (403, status(RANGE, "Forbidden"), ApiRefused, "maximum cpu usage"),
        (
            403,
            status('configmaps "a" is forbidden: status unknown for quota: tight, resources: pods', "Forbidden"),
            NotReady,
            "isn't counted",
        ),
        (403, status("x", "Forbidden", [{"reason": "NamespaceTerminating"}]), NotReady, "is being deleted"),
        (403, None, AccessDenied, "verbs: [patch]"),
        (404, status("not found", "NotFound"), ApiRefused, "not found"),
        (404, None, ApiRefused, "no such kind"),
        (409, status("the object has been modified", "Conflict"), Moved, "modified"),
        (410, status("too old", "Expired"), ApiRefused, "too old"),
        (413, None, ApiRefused, "413"),
        (422, status("field is immutable", "Invalid"), ApiRefused, "field is immutable"),
        (422, status("metadata.uid: field is immutable", "Invalid", UID), Moved, "metadata.uid"),
        (429, status("too many", "TooManyRequests"), ClusterUnavailable, "429"),
        (500, status("etcdserver: leader changed"), ClusterUnavailable, "leader changed"),
        (500, status(TYPED), ApiRefused, ".dota"),
        (500, status(PRUNED), ApiRefused, ".spec.currency"),
        (502, "<html>", ClusterUnavailable, "502"),
        (503, None, ClusterUnavailable, "503"),
        (504, status("timeout", "Timeout"), ClusterUnavailable, "504"),
    ],
)
def test_the_error_class_follows_from_status_and_reason(code: int, body: Any, kind: type[AnnealError], told: str) -> None:
    error = refused(code, body, "PATCH", CONFIG_MAP, "ConfigMap/shop/a")
    assert type(error) is kind
    assert str(error).startswith("ConfigMap/shop/a: ")
    assert told in str(error)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PRUNED, ApiRefused.UNCONVERTED),
        (".spec.currency: field not declared in schema", ApiRefused.UNCONVERTED),
        ("failed to convert new object: .spec.currency: field not declared in schema", ApiRefused.UNCONVERTED),
        ("request to convert CR to an invalid group/version: example.com/v1", ApiRefused.UNCONVERTED),
        ("failed to convert new object (shop/a; apps/v1, Kind=Deployment) to smd typed: .spec: duplicate entries for key", "Invalid"),
        (TYPED, "Invalid"),
    ],
)
def test_an_unconverted_managed_fields_entry_is_distinguished_from_an_invalid_body(text: str, reason: str) -> None:
    error = refused(500, status(text), "PATCH", "/apis/example.com/v2/namespaces/shop/offers/tea", "Offer/shop/tea")
    assert isinstance(error, ApiRefused)
    assert (error.status, error.reason) == (422, reason)


def test_an_exceeded_quota_is_shown_for_a_secret_too() -> None:
    error = refused(403, status(FULL.replace("configmaps", "secrets"), "Forbidden"), "PATCH", SECRET, "Secret/shop/s")
    assert "requested: secrets=1, used: secrets=2" in str(error)
    assert (error.who, error.code) == ("operator", "quota-exceeded")


def test_field_errors_are_kept_but_for_those_of_a_secret() -> None:
    causes = [{"field": "data", "reason": "FieldValueForbidden", "message": "Forbidden: field is immutable"}, {"message": "of a policy"}]
    for path, kept in ((CONFIG_MAP, 2), (SECRET, 0)):
        error = refused(422, status("bad", "Invalid", causes), "PATCH", path, "x")
        assert isinstance(error, ApiRefused)
        expected = FieldCause("data", "FieldValueForbidden", "Forbidden: field is immutable"), FieldCause("", "", "of a policy")
        assert error.causes == expected[:kept]
        assert (error.status, error.reason) == (422, "Invalid")


@pytest.mark.parametrize("code", [400, 403, 409, 422, 429, 500, 503])
def test_a_refused_secret_is_reported_by_constants_only(code: int) -> None:
    causes = [{"field": "data[hunter2]", "message": 'Invalid value: "hunter2"', "reason": "FieldValueInvalid"}]
    message = 'Secret "s" is invalid: data[hunter2]: Invalid value: "hunter2": .stringData.hunter2: expected string, got hunter2'
    text = str(refused(code, status(message, "Invalid", causes), "PATCH", SECRET, "Secret/shop/s"))
    assert "hunter2" not in text
    for part in ("Secret/shop/s: ", "Invalid value (field data[…])", "expected string (field stringData.…)"):
        assert part in text


def test_rbac_messages_about_a_secret_are_shown() -> None:
    message = 'secrets "s" is forbidden: User "u" cannot get resource "secrets" in API group "" in the namespace "shop"'
    error = refused(403, status(message, "Forbidden"), "GET", SECRET, "Secret/shop/s")
    assert message in str(error)


def test_a_missing_namespace_of_a_secret_is_shown_and_no_other() -> None:
    assert 'namespaces "shop" not found' in str(refused(404, status('namespaces "shop" not found', "NotFound"), "PATCH", SECRET, "s"))
    assert "hunter2" not in str(refused(404, status('namespaces "hunter2" not found', "NotFound"), "PATCH", SECRET, "s"))


@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "w.example.com" denied the request: User "u" cannot get resource "hunter2" in API group ""',
        'admission webhook "w.example.com" denied the request: exceeded quota: q, requested: hunter2',
        'admission webhook "w.example.com" denied the request: is attempting to grant RBAC permissions not currently held hunter2',
        'admission webhook "w.example.com" denied the request: data: Forbidden: field is immutable hunter2',
    ],
)
def test_an_admission_webhooks_message_about_a_secret_is_hidden(message: str) -> None:
    causes = [{"field": "data.hunter2", "message": "Forbidden: field is immutable", "reason": "FieldValueForbidden"}]
    error = refused(403, status(message, "Forbidden", causes), "PATCH", SECRET, "Secret/shop/s")
    assert isinstance(error, ApiRefused)
    assert "Forbidden, admission webhook w.example.com denied the request (the server's text is left out" in str(error)
    assert "hunter2" not in str(error)
    assert "immutable" not in str(error)


def test_a_policy_that_speaks_of_users_is_no_authorizer() -> None:
    message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: User may not use db-hunter2"
    error = refused(403, status(message, "Forbidden"), "PATCH", CONFIG_MAP, "ConfigMap/shop/a")
    assert isinstance(error, ApiRefused), "so that what it says of hidden fields is left out"
    plain = 'forbidden: User "u" cannot get path "/metrics"'
    assert isinstance(refused(403, status(plain, "Forbidden"), "GET", "/metrics", "metrics"), AccessDenied)


def test_a_custom_kind_called_secrets_isnt_a_secret() -> None:
    error = refused(422, status("spec.x: must be y", "Invalid"), "PATCH", "/apis/e.io/v1/namespaces/a/secrets/s", "Secret/a/s")
    assert "spec.x: must be y" in str(error)


def test_the_least_rbac_rule_is_one_line() -> None:
    assert (
        rule_text("list", "apps", "deployments", "")
        == "add to its ClusterRole: {apiGroups: [apps], resources: [deployments], verbs: [list]}"
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (urllib3.exceptions.SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate"), KubeconfigInvalid),
        (urllib3.exceptions.LocationParseError("http//"), KubeconfigInvalid),
        (urllib3.exceptions.ProtocolError("Connection aborted."), ClusterUnavailable),
        (ConnectionResetError(104, "reset"), ClusterUnavailable),
    ],
)
def test_a_broken_connection_is_distinguished_from_an_invalid_address(error: Exception, kind: type[AnnealError]) -> None:
    assert type(unreachable(error, "https://a:6443", "GET", "ConfigMap/shop/a")) is kind


def test_urllib3s_texts_arent_part_of_a_message() -> None:
    error = urllib3.exceptions.ProtocolError("<urllib3.connection.HTTPSConnection object at 0x7f00aa>: refused")
    assert (
        str(unreachable(error, "https://a", "GET", "x"))
        == "x: GET got no answer from https://a: the host broke off the connection or its answer"
    )


def test_only_a_connection_never_made_counts_as_never_sent() -> None:
    pool = urllib3.HTTPConnectionPool("a")
    assert never_sent(urllib3.exceptions.ConnectTimeoutError())
    assert not never_sent(urllib3.exceptions.ReadTimeoutError(pool, "/", "x"))
    assert not never_sent(urllib3.exceptions.ProtocolError("Connection aborted."))


CALL = 'failed calling webhook "a.example.com": no route to host'
DENIAL = f'admission webhook "b.example.com" denied the request: Internal error occurred: {CALL}'


@pytest.mark.parametrize(
    ("message", "causes", "webhook"),
    [
        (f"Internal error occurred: {CALL}", [CALL], "a.example.com"),
        (DENIAL, [CALL], ""),
        (f"Internal error occurred: {CALL}", [], ""),
        (f"Internal error occurred: {CALL}", [CALL, CALL], ""),
        ("Internal error occurred: no", ["no"], ""),
    ],
)
def test_a_webhook_that_answers_cant_pass_for_one_that_doesnt(message: str, causes: list[str], webhook: str) -> None:
    body = {"kind": "Status", "reason": "InternalError", "message": message, "details": {"causes": [{"message": each} for each in causes]}}
    error = refused(500, body, "PATCH", "/api/v1/namespaces/shop/configmaps/a", "ConfigMap/shop/a")
    assert isinstance(error, ClusterUnavailable)
    assert error.webhook == webhook
