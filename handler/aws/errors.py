"""Translates errors of Amazon's services and of botocore into ours, by literal tables; Amazon's texts are never quoted.

A message names the subject, what was seen, and the missing IAM action. The class is the caller's `kind` where the operator must act, else
a TransientError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, SecretUnavailable

ACTIONS = {
    "GetSecretValue": "secretsmanager:GetSecretValue",
    "GetParameter": "ssm:GetParameter",
    "DescribeCluster": "eks:DescribeCluster",
    "AssumeRole": "sts:AssumeRole",
    "AssumeRoleWithWebIdentity": "sts:AssumeRoleWithWebIdentity",
}
"""By the refused operation, which may be an earlier one: a role is assumed first."""
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
UNREADABLE = frozenset({"DecryptionFailure", "InvalidKeyId", "KMSAccessDenied"})
"""The use of a key is denied."""
_NOWHERE = "isn't known in this region and account", "correct its name, or set its region"
NAMED = {
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
_KEY = re.compile(r"\bkms\b|ciphertext", re.IGNORECASE)
_WHO = re.compile(r"User: (arn:[A-Za-z0-9:/_+=,.@-]{1,300}) is not authorized")


def code_of(error: Exception) -> str:
    """Return the code of a service's refusal; empty: the connection failed."""
    response: Any = getattr(error, "response", None)
    found = response.get("Error", {}).get("Code", "") if isinstance(response, dict) else ""
    return str(found).rpartition("#")[2].rpartition(":")[2]


def message_of(error: Exception) -> str:
    """Return a service's message. It is matched, never shown."""
    response: Any = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Message", "")) if isinstance(response, dict) else ""


def translated(error: Exception, subject: str, allowed: Mapping[str, str], kind: type[AnnealError]) -> AnnealError:
    """Translate a vendor's exception.

    `allowed`: by operation, the resource that an IAM policy must name; `kind`: the error when the operator must act. A SecretUnavailable
    stays one in any case: readers of a secret use the previous value and retry.
    """
    code, operation = code_of(error), str(getattr(error, "operation_name", ""))
    status = getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if code else 0
    secret = issubclass(kind, SecretUnavailable)
    passing, denied = (kind, kind) if secret else (ClusterUnavailable, AccessDenied)
    if code in DENIED | UNREADABLE:
        seen, fix = _denied(message_of(error), code, operation, allowed)
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


def _denied(message: str, code: str, operation: str, allowed: Mapping[str, str]) -> tuple[str, str]:
    """Return which identity may not do what, and the statement that allows it."""
    found = _WHO.search(message)
    who = found[1] if found else "the handler's identity"
    if code in UNREADABLE or _KEY.search(message):
        return f"{who} may not decrypt it", "allow it kms:Decrypt on the key that encrypts it"
    action = ACTIONS.get(operation, operation)
    trusted = ", and let the trust policy of that role name it" if operation == "AssumeRole" else ""
    return f"{who} may not {action}", f"allow it {action} on {allowed.get(operation, 'it')}{trusted}"
