"""A configuration as functions have it: secrets in stores, clusters of EKS."""

from __future__ import annotations

from typing import Any

CONFIG: dict[str, Any] = {
    "apiVersion": "anneal.dev/v1alpha1",
    "kind": "Config",
    "webhooks": {"github": {"secrets": [{"awsSecretsManager": {"id": "anneal/webhook"}}]}},
    "replay": {"tokens": [{"name": "ci", "secret": {"awsParameter": "/anneal/ci"}}]},
    "page": {
        "url": "https://anneal.example.com",
        "key": {"awsSecretsManager": {"id": "anneal/page"}},
        "tokens": [{"name": "ada", "secret": {"awsParameter": "/anneal/ada"}}],
        "roles": [{"role": "operator", "users": ["ada"]}],
    },
    "targets": [
        {
            "name": "shop",
            "repository": {
                "url": "https://git.example.com/shop.git",
                "auth": {"basic": {"username": "oauth2", "password": {"awsSecretsManager": {"id": "anneal/git", "key": "token"}}}},
                "tls": {"caFile": "trust/ca.pem"},
            },
            "namespaces": ["shop"],
            "cluster": {"eks": {"cluster": "prod", "region": "eu-west-1"}},
        },
        {
            "name": "far",
            "repository": {"url": "https://git.example.com/far.git"},
            "namespaces": ["far"],
            "cluster": {"eks": {"cluster": "far", "role": "arn:aws:iam::123456789012:role/deployer"}},
        },
    ],
}
