"""Clients of Amazon's services with short time-outs, and their errors in our words: they have Amazon's code, never its text."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, SecretUnavailable

T = TypeVar("T")
CONNECT, READ, ATTEMPTS = 2.0, 5.0, 2
"""Seconds for a connection and for silence, and how often a request is sent at most: three calls in a row stay below 45 seconds."""
ROLE_SECONDS = 3600  # of a role's session; roles chained onto a role allow no more


class AwsClients:
    """Clients with the handler's own identity or with a role's. Safe to share between threads, not across a fork."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`environ`: AWS_REGION and AWS_DEFAULT_REGION; botocore reads credentials from the process's own."""
        self._environ = environ
        self._lock = threading.RLock()  # a client of a role may want one without
        self._sessions: dict[tuple[str, str], Any] = {}
        self._clients: dict[tuple[str, ...], Any] = {}

    def region(self, wanted: str, subject: str, kind: type[AnnealError]) -> str:
        """Return the region to ask: the wanted one, the environment's or the profile's. Raises an error of `kind`: there is none."""
        named = wanted or self._environ.get("AWS_REGION") or self._environ.get("AWS_DEFAULT_REGION")
        if named:
            return named
        with self._lock:
            named = self._session("", "").get_config_variable("region")
        if not named:
            raise kind.of(subject, "no AWS region is known", fix="set AWS_REGION, or name it by its ARN or its `region`")
        return str(named)

    def client(self, service: str, region: str, role: str = "", **options: Any) -> Any:
        """Return a service's client; botocore can make only one at a time. `options`: of botocore's Config."""
        key = (service, region, role, *sorted(options))
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._session(role, region).create_client(service, region_name=region, config=_config(**options))
            return self._clients[key]

    def presigned(self, service: str, query: str, headers: Mapping[str, str], region: str, role: str, seconds: int) -> str:
        """Return a signed URL of the region's own service, whatever endpoint is configured: EKS accepts no other host."""
        from botocore.exceptions import NoCredentialsError  # noqa: PLC0415 - the same third of a second
        from botocore.signers import RequestSigner  # noqa: PLC0415 - the same

        client = self.client(service, region, role, ignore_configured_endpoint_urls=True)
        with self._lock:
            session = self._session(role, region)
            credentials, events = session.get_credentials(), session.get_component("event_emitter")
        if credentials is None:
            raise NoCredentialsError
        signer = RequestSigner(client.meta.service_model.service_id, region, service, "v4", credentials, events)
        url = f"{client.meta.endpoint_url.rstrip('/')}/?{query}"
        request = {"method": "GET", "url": url, "body": {}, "headers": dict(headers), "context": {}}
        return str(signer.generate_presigned_url(request, operation_name="", region_name=region, expires_in=seconds))

    def _session(self, role: str, region: str) -> Any:
        key = (role, region if role else "")
        if key not in self._sessions:
            import botocore.session  # noqa: PLC0415 - the same third of a second

            made = botocore.session.Session()
            made.set_config_variable("sts_regional_endpoints", "regional")
            made.set_default_client_config(_config())  # of the clients that botocore makes by itself, to assume a role by web identity
            if role:
                from botocore.credentials import DeferredRefreshableCredentials  # noqa: PLC0415 - the same

                made.register_component("data_loader", self._session("", "").get_component("data_loader"))
                made._credentials = DeferredRefreshableCredentials(lambda: self._assumed(role, region), "assume-role")  # noqa: SLF001 - botocore has no other way to give a session credentials that renew themselves
            self._sessions[key] = made
        return self._sessions[key]

    def _assumed(self, role: str, region: str) -> dict[str, Any]:
        """Assume a role at the region's own STS."""
        answer = self.client("sts", region).assume_role(RoleArn=role, RoleSessionName="anneal", DurationSeconds=ROLE_SECONDS)
        given = answer["Credentials"]
        keys = {"access_key": given["AccessKeyId"], "secret_key": given["SecretAccessKey"], "token": given["SessionToken"]}
        return {**keys, "expiry_time": given["Expiration"].isoformat()}


def _config(**options: Any) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - it takes a third of a second to import

    retries = {"total_max_attempts": ATTEMPTS, "mode": "standard"}
    return Config(connect_timeout=CONNECT, read_timeout=READ, retries=retries, user_agent_extra="anneal", **options)


def asked(subject: str, allowed: Mapping[str, str], ask: Callable[[], T], kind: type[AnnealError]) -> T:
    """Call a service, and translate the vendor's exceptions. `subject`: first in every message; the rest as in `translated`.

    Raises AnnealError: of `kind`, or ClusterUnavailable when it is retried.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - the same third of a second

    try:
        return ask()
    except (BotoCoreError, ClientError) as error:
        failure = translated(error, subject, allowed, kind)
    raise failure  # outside of `except`: the vendor's exception may hold the request, and must be no context


ACTIONS = {
    "GetSecretValue": "secretsmanager:GetSecretValue",
    "GetParameter": "ssm:GetParameter",
    "Decrypt": "kms:Decrypt",
    "DescribeCluster": "eks:DescribeCluster",
    "AssumeRole": "sts:AssumeRole",
    "AssumeRoleWithWebIdentity": "sts:AssumeRoleWithWebIdentity",
}
"""By the refused operation, which may be an earlier one: a role is assumed first."""
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
UNREADABLE = frozenset({"DecryptionFailure", "InvalidKeyId", "KMSAccessDenied"})  # the use of a key is denied
_NOWHERE = "isn't known in this region and account", "correct its name, or set its region"
_WRAPPED = "doesn't open it: another key has wrapped it, or with another encryption context", "encrypt the file anew: sops rotate -i FILE"
_UNUSABLE = "is disabled, or waits to be deleted", "enable it: aws kms enable-key --key-id ARN"
NAMED = {
    "NotFoundException": _NOWHERE,
    "InvalidCiphertextException": _WRAPPED,
    "IncorrectKeyException": _WRAPPED,
    "DisabledException": _UNUSABLE,
    "KMSInvalidStateException": _UNUSABLE,
    "ResourceNotFoundException": _NOWHERE,
    "ParameterNotFound": _NOWHERE,
    "ParameterVersionNotFound": _NOWHERE,
    "InvalidRequestException": ("is in no state to be read: it is marked for deletion", "restore it, or name another one"),
}
"""By code: what was seen, and the way out."""
REFUSED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "InvalidIdentityToken",
    }
)
LATER = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "InternalFailure",
        "InternalServiceError",
        "InternalServerError",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
KEYS = "give the process a role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
WAYS = {
    "NoCredentialsError": ("no AWS credentials are found", KEYS),
    "PartialCredentialsError": ("the AWS credentials are incomplete", KEYS),
    "CredentialRetrievalError": ("the AWS credentials can't be had", KEYS),
    "MetadataRetrievalError": ("the AWS credentials can't be had", KEYS),
    "ProfileNotFound": ("there is no such AWS profile", "correct AWS_PROFILE"),
    "ConfigParseError": ("AWS's own configuration file can't be read", "correct ~/.aws/config"),
    "ParamValidationError": ("it has no name that AWS takes", "correct the configuration"),
    "EndpointConnectionError": ("AWS isn't reached", ""),
    "ConnectTimeoutError": ("AWS isn't reached in time", ""),
    "ReadTimeoutError": ("AWS doesn't answer in time", ""),
    "ConnectionClosedError": ("AWS closed the connection", ""),
    "ProxyConnectionError": ("the proxy isn't reached", ""),
    "SSLError": ("AWS's certificate isn't trusted", "set AWS_CA_BUNDLE to the authorities to trust"),
}
"""By botocore's class: what was seen, and the way out; empty: it is retried."""
NOT = "can't be looked up: "
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
_DECRYPTING = frozenset({"GetSecretValue", "GetParameter"})
_WHO = "; who that is: aws sts get-caller-identity"


def translated(error: Exception, subject: str, allowed: Mapping[str, str], kind: type[AnnealError]) -> AnnealError:
    """Translate a vendor's exception. `allowed`: by operation, the name or ARN that an IAM policy must allow.

    `kind`: the error when the operator must act. A SecretUnavailable stays one: its readers use the previous value and retry.
    """
    answer = getattr(error, "response", None)
    response: dict[str, Any] = answer if isinstance(answer, dict) else {}  # empty: the connection failed
    refusal = response.get("Error", {})
    code = _code(refusal)
    operation = str(getattr(error, "operation_name", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if code else 0
    secret = issubclass(kind, SecretUnavailable)
    passing, denied = (kind, kind) if secret else (ClusterUnavailable, AccessDenied)
    if code in DENIED | UNREADABLE:
        seen, fix = _denied(code, operation, allowed)
        return denied.of(subject, NOT + seen, fix=fix)
    if code in NAMED:
        seen, fix = NAMED[code]
        return kind.of(subject, seen, fix=fix)
    if code in REFUSED:
        return kind.of(subject, f"{NOT}AWS doesn't accept the credentials ({code})", fix=KEYS)
    if code in LATER or status >= 500:
        return passing.of(subject, f"{NOT}AWS answers {code}")
    if code:
        return kind.of(subject, f"{NOT}AWS answers {code} to {operation}")
    seen, fix = WAYS.get(type(error).__name__, (f"AWS can't be asked: {type(error).__name__}", ""))
    return (kind if fix else passing).of(subject, NOT + seen, fix=fix)


def _code(refusal: Mapping[str, Any]) -> str:
    """Return an answer's error code, without its namespace; empty: there is no answer."""
    code = str(refusal.get("Code", "")).rpartition("#")[2].rpartition(":")[2]
    return code if not code or _CODE.fullmatch(code) else "an unknown code"


def _denied(code: str, operation: str, allowed: Mapping[str, str]) -> tuple[str, str]:
    if code in UNREADABLE:
        return "the handler's identity may not decrypt it", f"allow it kms:Decrypt on the key that encrypts it{_WHO}"
    action = ACTIONS.get(operation, operation)
    trusted = ", and let the trust policy of that role name it" if operation == "AssumeRole" else ""
    key = ", and kms:Decrypt on the key that encrypts it" if operation in _DECRYPTING else ""
    return f"the handler's identity may not {action}", f"allow it {action} on {allowed.get(operation, 'it')}{trusted}{key}{_WHO}"
