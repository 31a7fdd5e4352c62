"""What tests of a broken configuration share: a small one to break, words that many messages have."""

from __future__ import annotations

import pytest

from handler.config.load import parse
from handler.model.errors import ConfigInvalid

HEAD = "apiVersion: anneal.dev/v1alpha1\nkind: Config\n"

TARGET = HEAD + "targets:\n  - name: shop\n    repository: {url: 'https://git.example.com/shop.git'}\n    namespaces: [shop]\n"

REF = "expected a name by git's rules (git check-ref-format)"

SERVER = "expected the https:// or http:// address of an API server"

AUTH = "credentials go under `auth: {basic: {username: ..., password: {env: GIT_TOKEN}}}`"


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        parse(text, "a.yaml")
    return str(caught.value).splitlines()
