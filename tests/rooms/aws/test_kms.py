"""Data keys of SOPS under AWS KMS, as moto's server has it: under the handler's own identity, the listed keys alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest

from handler.app.external_services import ExternalServices, TargetKeys
from handler.config.decryption import Decryption
from handler.config.secrets import Secrets
from handler.model.errors import AccessDenied, DecryptionRefused
from handler.render import Sandbox
from handler.render.sops.decryptor import Decryptor
from infra.moto import Moto
from tests.rooms.render.kustomize_trees import public_tools
from tests.rooms.render.sops_files import CANARY, SECRET, VALUES, render, sops

pytestmark = pytest.mark.usefixtures("waited_for")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


def key(aws: Moto) -> str:
    arn: str = boto3.client("kms", **aws.client).create_key()["KeyMetadata"]["Arn"]
    return arn


def encrypted(aws: Moto, arn: str, *flags: str) -> bytes:
    environ = {name: value for name, value in aws.environ.items() if name.startswith("AWS_")}
    return sops("encrypt", "--filename-override", "a.yaml", "--kms", arn, *VALUES, *flags, given=SECRET, environ=environ)


def opened(sandbox: Sandbox, data: bytes, *arns: str) -> Any:
    settings = Decryption(kms=arns)
    keys = TargetKeys(settings, Secrets(), ExternalServices(os.environ).kms.unwrap)
    (manifest,) = render(sandbox, {"deploy/a.yaml": data}, Decryptor("shop", settings, keys)).manifests
    return manifest.body()["data"]


def test_a_listed_key_opens_a_file_with_its_encryption_context(aws: Moto, sandbox: Sandbox) -> None:
    arn = key(aws)
    found = opened(sandbox, encrypted(aws, arn, "--encryption-context", "team:shop,stage:prod"), arn)
    assert found.keys() == {"password", "user"}
    assert CANARY not in str(found)


def test_of_several_keys_the_listed_one_is_asked(aws: Moto, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = key(aws), key(aws)
    asked: list[str] = []
    unwrap = TargetKeys.kms

    def noted(self: TargetKeys, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        asked.append(arn)
        return unwrap(self, arn, wrapped, context, place)

    monkeypatch.setattr(TargetKeys, "kms", noted)
    assert opened(sandbox, encrypted(aws, f"{one},{other}"), other)
    assert asked == [other]


def test_a_key_that_isnt_listed_is_refused_before_anything_is_asked(aws: Moto) -> None:
    arn = key(aws)
    keys = TargetKeys(Decryption(kms=(arn,)), Secrets(), ExternalServices(os.environ).kms.unwrap)
    with pytest.raises(DecryptionRefused, match="isn't listed"):
        keys.kms(arn.replace("key/", "key/0"), b"x", {}, "a.yaml")


@pytest.mark.parametrize("change", ["context", "wrapped", "gone"])
def test_what_kms_refuses_is_said_in_our_words(aws: Moto, sandbox: Sandbox, change: str) -> None:
    arn = key(aws)
    data = encrypted(aws, arn).decode()
    if change == "gone":
        gone = f"{arn.rpartition('/')[0]}/00000000-0000-0000-0000-000000000000"
        data, arn = data.replace(arn, gone), gone
    elif change == "wrapped":
        wrapped = data.partition("enc: ")[2].splitlines()[0]
        data = data.replace(wrapped, "eA==")
    else:
        data = data.replace(f"- arn: {arn}\n", f"- arn: {arn}\n          context:\n            team: other\n")
    with pytest.raises((DecryptionRefused, AccessDenied)) as refused:
        opened(sandbox, data.encode(), arn)
    assert str(refused.value).startswith(f"deploy/a.yaml, for {arn}: ")
    assert json.dumps(str(refused.value)).isascii()
