"""Against a real sshd: which host is trusted, which key gets in, and that neither key nor passphrase is ever shown."""

from __future__ import annotations

import pytest

from handler.model.errors import ConfigInvalid
from tests.rooms.source.open_repository import following
from tests.rooms.source.ssh_repository import Shop
from tests.rooms.source.test_ssh_known_hosts import MAIN, PASSPHRASE


@pytest.mark.parametrize(
    ("kind", "pem", "passphrase"),
    [
        ("ed25519", "", ""),
        ("ed25519", "", PASSPHRASE),
        ("ecdsa", "", PASSPHRASE),
        ("ecdsa", "PEM", ""),
        ("rsa", "", ""),
        ("rsa", "PEM", PASSPHRASE),
        ("rsa", "PKCS8", PASSPHRASE),
        ("rsa", "PKCS8", ""),
    ],
)
def test_every_usual_private_key_format_signs_in(shop: Shop, kind: str, pem: str, passphrase: str) -> None:
    key = shop.host.new_key("another", kind, passphrase, pem)
    shop.host.accept(key)
    with shop.opened(key=key, passphrase=passphrase) as git:
        assert git.head(following(MAIN)).commit == shop.sha


@pytest.mark.parametrize(
    ("passphrase", "words"), [("", "is encrypted; set repository.auth.ssh.passphrase"), ("wrong", "the passphrase is wrong, or")]
)
@pytest.mark.parametrize("pem", ["", "PEM", "PKCS8"])
def test_a_missing_or_wrong_passphrase_is_told(shop: Shop, pem: str, passphrase: str, words: str) -> None:
    key = shop.host.new_key("locked", "rsa", PASSPHRASE, pem)
    with shop.opened(key=key, passphrase=passphrase) as git, pytest.raises(ConfigInvalid, match=words):
        git.head(following(MAIN))
    assert shop.host.connections == 0
