"""Against a real sshd: which host is trusted, which key gets in, and that neither key nor passphrase is ever shown."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from handler.config.git_settings import SecretRef
from handler.config.secrets import Secret
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, SecretUnavailable
from tests.rooms.source.open_repository import following
from tests.rooms.source.ssh_repository import Shop

MAIN = "refs/heads/main"
PASSPHRASE = "canary-7d1e40-passphrase"


def test_a_passphrase_for_a_key_that_needs_none_does_no_harm(shop: Shop) -> None:
    with shop.opened(passphrase=PASSPHRASE) as git:
        assert git.head(following(MAIN)).commit == shop.sha


@pytest.mark.parametrize("text", ["canary\n", "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary\n-----END OPENSSH PRIVATE KEY-----\n"])
def test_a_file_that_is_no_private_key_is_refused_without_quoting_it(shop: Shop, text: str) -> None:
    file = shop.host.root / "no-key"
    file.write_text(text)
    with shop.opened(key=file) as git, pytest.raises(ConfigInvalid, match="is not a private key") as caught:
        git.head(following(MAIN))
    assert "canary" not in str(caught.value)


def test_a_key_is_read_anew_for_each_operation(shop: Shop) -> None:
    rotated = shop.host.root / "rotated"
    rotated.write_text(shop.key.read_text())
    with shop.opened(key=rotated) as git:
        git.head(following(MAIN))
        rotated.unlink()
        with pytest.raises(SecretUnavailable, match="doesn't exist"):
            git.head(following(MAIN))
        rotated.write_text(shop.key.read_text())
        assert git.head(following(MAIN)).commit == shop.sha


def test_a_key_that_the_host_doesnt_know_is_told_with_its_fingerprint(shop: Shop) -> None:
    stranger = shop.host.new_key("stranger")
    with (
        shop.opened(key=stranger) as git,
        pytest.raises(AccessDenied, match=r"user git on \[127.*doesn't take the key SHA256:.*public half"),
    ):
        git.head(following(MAIN))


@pytest.mark.parametrize(
    "options",
    [
        {"PubkeyAuthentication": "no", "PasswordAuthentication": "yes"},
        {"AuthenticationMethods": "publickey,publickey"},
    ],
)
def test_a_host_that_wants_more_than_a_key_is_told_and_gets_no_more(shop: Shop, options: dict[str, str]) -> None:
    shop.host.options = options
    with shop.opened() as git, pytest.raises(AccessDenied, match="doesn't take the key"):
        git.head(following(MAIN))


def other_key(shop: Shop) -> None:
    shop.known = shop.host.known_hosts(shop.host.new_key("former"))


def other_type(shop: Shop) -> None:
    shop.known = shop.host.known_hosts(shop.host.new_key("former", "rsa"))


def nothing(shop: Shop) -> None:
    shop.known = "# nobody yet\n"


def other_port(shop: Shop) -> None:
    shop.known = shop.host.known_hosts(name="127.0.0.1")


def revoked(shop: Shop) -> None:
    shop.known += "@revoked " + shop.host.known_hosts(name="*")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_key, r"shows the host key SHA256:\S+; pinned for it is SHA256:\S+; compare"),
        (other_type, r"offers no host key of the pinned types \(ssh-rsa\)"),
        (nothing, r"shows the host key SHA256:\S+; none is pinned"),
        (other_port, r"shows the host key SHA256:\S+; none is pinned"),
        (revoked, r"shows the host key SHA256:\S+, which is marked @revoked"),
    ],
)
def test_a_host_whose_key_isnt_pinned_gets_nothing_from_us(shop: Shop, change: Callable[[Shop], None], words: str) -> None:
    change(shop)
    with shop.opened() as git, pytest.raises(ConfigInvalid, match=words) as caught:
        git.head(following(MAIN))
    told = str(caught.value)
    assert f"`ssh-keyscan -p {shop.host.port} 127.0.0.1`" in told
    assert f"{shop.host.root}/known_hosts: [127.0.0.1]:{shop.host.port}: " in told


def test_the_hosts_key_is_asked_for_in_a_type_that_is_pinned(shop: Shop) -> None:
    rsa, ecdsa = shop.host.new_key("rsa", "rsa"), shop.host.new_key("ecdsa", "ecdsa")
    shop.host.host_keys = (*shop.host.host_keys, rsa, ecdsa)
    for pinned in (rsa, ecdsa):
        shop.known = shop.host.known_hosts(pinned)
        with shop.opened() as git:
            assert git.head(following(MAIN)).commit == shop.sha


def test_a_pinned_key_may_change_while_we_run(shop: Shop) -> None:
    with shop.opened() as git:
        git.head(following(MAIN))
        shop.host.host_keys = (shop.host.new_key("next"),)
        with pytest.raises(ConfigInvalid, match="pinned for it is"):
            git.head(following(MAIN))
        (shop.host.root / "known_hosts").write_text(shop.host.known_hosts())
        assert git.head(following(MAIN)).commit == shop.sha


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("Ciphers", "aes128-cbc,3des-cbc"),
        ("KexAlgorithms", "diffie-hellman-group14-sha1"),
        ("MACs", "hmac-sha1,hmac-md5"),
        ("HostKeyAlgorithms", "ssh-rsa"),
    ],
)
def test_a_host_with_only_broken_ssh_algorithms_is_refused(shop: Shop, option: str, value: str) -> None:
    shop.host.options = {option: value}
    if option == "MACs":
        shop.host.options["Ciphers"] = "aes128-ctr"  # GCM needs no MAC
    if option == "HostKeyAlgorithms":
        shop.host.host_keys = (shop.host.new_key("rsa", "rsa"),)
        shop.known = shop.host.known_hosts()
    with shop.opened() as git, pytest.raises(ConfigInvalid, match=r"nothing that is safe|no host key of the pinned types"):
        git.head(following(MAIN))


def test_no_secret_is_in_any_error_log_or_representation(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    locked = shop.host.new_key("locked", "ed25519", PASSPHRASE)
    secrets = [line for key in (shop.key, locked) for line in key.read_text().splitlines()[1:-1]] + [PASSPHRASE]
    seen = []
    for key, passphrase, known in ((locked, PASSPHRASE, shop.known), (locked, PASSPHRASE + "x", shop.known), (shop.key, "", "")):
        shop.known = known
        with shop.opened(key=key, passphrase=passphrase) as git:
            with pytest.raises(AnnealError) as caught:
                git.head(following(MAIN))
            assert caught.value.__cause__ is None
            seen.append(f"{caught.value} {caught.value!r} {git!r} {vars(git)!r} {vars(git._transport)!r}")
    assert len(seen) == 3
    assert [secret for secret in secrets if any(secret in text for text in [*seen, caplog.text])] == []
    assert "paramiko" not in caplog.text


def test_a_key_that_was_rotated_since_it_was_asked_for_signs_in_at_once(shop: Shop) -> None:
    """A store's answer is kept for a while: what the host refuses is read anew before an error is reported."""
    stranger, asked = shop.host.new_key("stranger"), []

    def again(ref: SecretRef) -> Secret:
        asked.append(ref)
        return Secret(shop.key.read_text())

    with shop.opened(key=stranger, again=again) as git:
        assert git.head(following(MAIN)).commit == shop.sha
    assert asked == [SecretRef(file=str(stranger))]
