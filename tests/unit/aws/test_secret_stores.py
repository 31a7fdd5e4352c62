"""Secrets of AWS: what their names tell."""

from __future__ import annotations

import pytest

from handler.aws.secret_stores import region_of


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("anneal/hook", ""),
        ("/anneal/hook", ""),
        ("arn:aws:secretsmanager:eu-west-1:123456789012:secret:anneal/hook-AbCdEf", "eu-west-1"),
        ("arn:aws-cn:ssm:cn-north-1:123456789012:parameter/anneal/hook", "cn-north-1"),
        ("arn:aws", ""),
    ],
)
def test_an_arn_names_its_aws_region(name: str, region: str) -> None:
    assert region_of(name) == region
