"""What Amazon's services say, in our words: who must do what, and never a text of theirs."""

from __future__ import annotations

import pytest
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from handler.aws.clients import translated
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, KubeconfigInvalid, SecretUnavailable

ROLE = "arn:aws:iam::123456789012:role/other"
ALLOWED = {"GetSecretValue": "anneal/hook", "AssumeRole": ROLE}
WHO = "arn:aws:sts::123456789012:assumed-role/anneal/worker"
NOT_AUTHORIZED = f"User: {WHO} is not authorized to perform: something on resource: CANARY because no identity-based policy allows it"
NO_KEY = "Access to KMS is not allowed CANARY"
CIPHER = "The ciphertext refers to a customer master key that does not exist CANARY"


def refused(code: str, message: str = "CANARY", operation: str = "GetSecretValue", status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, operation)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            refused("AccessDeniedException", NOT_AUTHORIZED),
            "allow it secretsmanager:GetSecretValue on anneal/hook, and kms:Decrypt on the key that encrypts it; who that is: aws sts get-",
        ),
        (
            refused("AccessDenied", NOT_AUTHORIZED, "AssumeRole", 403),
            f"may not sts:AssumeRole; allow it sts:AssumeRole on {ROLE}, and let the trust policy of that role name it; who that is: ",
        ),
        (refused("AccessDeniedException", NO_KEY), "on anneal/hook, and kms:Decrypt on the key"),
        (refused("AccessDeniedException", CIPHER, "GetParameter"), "on it, and kms:Decrypt on the key"),
        (refused("CANARY: an odd code"), "AWS answers an unknown code to GetSecretValue"),
        (refused("DecryptionFailure"), "may not decrypt it; allow it kms:Decrypt on the key"),
        (refused("ResourceNotFoundException"), "isn't known in this region and account; correct its name"),
        (refused("ParameterNotFound"), "isn't known in this region and account; correct its name"),
        (refused("ExpiredTokenException"), "AWS doesn't accept the credentials (ExpiredTokenException); give the process a role"),
        (refused("InvalidParameterException"), "AWS answers InvalidParameterException to GetSecretValue"),
        (refused("InvalidRequestException"), "is marked for deletion; restore it, or name another one"),
        (exceptions.NoCredentialsError(), "no AWS credentials are found; give the process a role, or AWS_ACCESS_KEY_ID"),
        (exceptions.ProfileNotFound(profile="CANARY"), "there is no such AWS profile; correct AWS_PROFILE"),
        (exceptions.ParamValidationError(report="CANARY"), "it has no name that AWS takes; correct the configuration"),
    ],
)
def test_aws_errors_that_the_operator_must_act_on(error: Exception, said: str) -> None:
    for kind in (SecretUnavailable, KubeconfigInvalid):
        found = translated(error, "it", ALLOWED, kind)
        assert isinstance(found, (kind, AccessDenied))
        assert said in str(found)
        assert "CANARY" not in str(found)
        assert WHO not in str(found)
    assert isinstance(translated(error, "it", ALLOWED, SecretUnavailable), SecretUnavailable)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (refused("ThrottlingException"), "AWS answers ThrottlingException"),
        (refused("Whatever", status=503), "AWS answers Whatever"),
        (exceptions.EndpointConnectionError(endpoint_url="https://CANARY"), "AWS isn't reached"),
        (exceptions.ConnectTimeoutError(endpoint_url="https://CANARY"), "AWS isn't reached in time"),
        (exceptions.ReadTimeoutError(endpoint_url="https://CANARY"), "AWS doesn't answer in time"),
        (BotoCoreError(), "AWS can't be asked: BotoCoreError"),
    ],
)
def test_transient_aws_errors_are_retried(error: Exception, said: str) -> None:
    kinds: dict[type[AnnealError], type[AnnealError]] = {SecretUnavailable: SecretUnavailable, KubeconfigInvalid: ClusterUnavailable}
    for kind, expected in kinds.items():
        found = translated(error, "it", ALLOWED, kind)
        assert (type(found), str(found)) == (expected, f"it: can't be looked up: {said}")
