"""Against OpenPGP signatures as gpg makes them; `git verify-commit` is the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from handler.config.git_settings import Verify
from handler.model.errors import ConfigInvalid
from handler.source.signatures import openpgp
from handler.source.signatures.signed_commit import Unproven, split
from handler.source.signatures.verified_source import TrustedKeys
from infra.githost import Host, Work
from tests.rooms.source.verify_commit import git_believes, judge, refused, rewritten
from tests.signing import Gpg, at, public, raw, signed_by_ssh, ssh_key


@pytest.fixture
def work(host: Host) -> Work:
    return Work.of(host, "shop").write("app.yaml", "kind: ConfigMap\n")


@pytest.fixture(scope="module")
def gpg() -> Iterator[Gpg]:
    with Gpg() as running:
        yield running


def pgp_works(work: Work, gpg: Gpg, commit: str) -> bool:
    return git_believes(work, commit, "-c", f"gpg.program={gpg.program}")


@pytest.mark.parametrize("kind", ["ed25519", "rsa3072", "nistp384"])
def test_a_commit_signed_by_a_configured_openpgp_key_counts_as_it_does_for_git(work: Work, gpg: Gpg, kind: str) -> None:
    who, other = f"{kind}@example.invalid", f"other-{kind}@example.invalid"
    key = gpg.key(who, kind)
    gpg.key(other)
    commit = gpg.commit(work, key, "Signed")
    judge(work, commit, pgp=(gpg.public(other), gpg.public(who)))
    assert pgp_works(work, gpg, commit)
    assert "is not among the configured ones" in refused(work, commit, pgp=(gpg.public(other),))
    altered = rewritten(work, raw(work, commit).replace(b"Signed", b"signed"))
    assert "did not sign this content" in refused(work, altered, pgp=(gpg.public(who),))


def test_a_signing_subkey_counts_until_it_ends_or_is_revoked(work: Work, gpg: Gpg) -> None:
    key = gpg.key("subkeys@example.invalid")
    gpg.run("--quick-add-key", key, "ed25519", "sign", "2d")
    commit = gpg.commit(work, key, "Signed")
    good = gpg.public(key)
    judge(work, commit, pgp=(good,))
    signed = split(raw(work, commit))
    certificates = openpgp.read_certificates(good)
    later = datetime.now(UTC) + timedelta(days=3)
    with pytest.raises(Unproven, match="which expired on"):
        openpgp.verify(signed.payload, signed.signature, certificates, later)
    gpg.run("--command-fd", "0", "--edit-key", key, stdin="key 1\nrevkey\ny\n2\n\ny\nsave\n")
    assert "is revoked" in refused(work, commit, pgp=(gpg.public(key),))
    assert not pgp_works(work, gpg, commit)


def test_an_expired_key_doesnt_count_although_it_was_valid_when_it_signed(work: Work, gpg: Gpg) -> None:
    key = gpg.key("expired@example.invalid", "ed25519", "30d", *at("20240101"))
    commit = gpg.commit(work, key, "Signed", *at("20240110"))
    assert "expired on 2024-01-31" in refused(work, commit, pgp=(gpg.public(key),))
    assert not pgp_works(work, gpg, commit)


def test_a_revoked_key_doesnt_count(work: Work, gpg: Gpg) -> None:
    key = gpg.key("revoked@example.invalid")
    commit = gpg.commit(work, key, "Signed")
    judge(work, commit, pgp=(gpg.public(key),))
    revoke(gpg, key)
    assert "is revoked" in refused(work, commit, pgp=(gpg.public(key),))
    assert not pgp_works(work, gpg, commit)


# --- several copies of one certificate: a keyring joins them, so their order can't matter
def revoke(gpg: Gpg, key: str) -> None:
    gpg.run("--import", stdin=(gpg.home / "openpgp-revocs.d" / f"{key}.rev").read_text().replace(":-----BEGIN", "-----BEGIN"))


def both_ways(old: str, new: str) -> list[tuple[str, ...]]:
    return [(old, new), (new, old), (old + new,), (new + old,)]


def test_a_revoked_copy_revokes_the_key_wherever_it_stands(work: Work, gpg: Gpg) -> None:
    key = gpg.key("copies-revoked@example.invalid")
    commit, old = gpg.commit(work, key, "Signed"), gpg.public(key)
    revoke(gpg, key)
    for blocks in both_ways(old, gpg.public(key)):
        assert "is revoked" in refused(work, commit, pgp=blocks)


def test_a_renewed_copy_renews_the_key_wherever_it_stands(work: Work, gpg: Gpg) -> None:
    key = gpg.key("copies-renewed@example.invalid", "ed25519", "30d", *at("20240101"))
    gpg.run(*at("20240102"), "--quick-add-key", key, "ed25519", "sign", "20d")
    old = gpg.public(key)
    gpg.run("--quick-set-expire", key, "0")
    primary_alone = gpg.public(key)
    subkey = gpg.run("--with-colons", "--list-keys", key).split("\nfpr:")[-1].strip(":\n")
    gpg.run("--quick-set-expire", key, "0", subkey)
    by_subkey = gpg.commit(work, key, "Signed by the subkey")
    for blocks in both_ways(old, gpg.public(key)):
        judge(work, by_subkey, pgp=blocks)
    for blocks in both_ways(old, primary_alone):
        assert "expired on 2024-01-22" in refused(work, by_subkey, pgp=blocks)
    assert pgp_works(work, gpg, by_subkey)


def test_a_revoked_copy_of_a_signing_subkey_revokes_it_wherever_it_stands(work: Work, gpg: Gpg) -> None:
    key = gpg.key("copies-subkeys@example.invalid")
    gpg.run("--quick-add-key", key, "ed25519", "sign", "never")
    commit, old = gpg.commit(work, key, "Signed"), gpg.public(key)
    gpg.run("--command-fd", "0", "--edit-key", key, stdin="key 1\nrevkey\ny\n2\n\ny\nsave\n")
    for blocks in both_ways(old, gpg.public(key)):
        assert "is revoked" in refused(work, commit, pgp=blocks)


def test_an_expired_signature_and_one_over_sha1_dont_count(work: Work, gpg: Gpg) -> None:
    key = gpg.key("weak@example.invalid", "ed25519", "never", *at("20240101"))
    expired = gpg.commit(work, key, "Expired", *at("20240110"), "--default-sig-expire", "5d")
    assert "has a signature that expired on 2024-01-15" in refused(work, expired, pgp=(gpg.public(key),))
    assert not pgp_works(work, gpg, expired)
    sha1 = gpg.commit(work, key, "Weak", "--digest-algo", "SHA1", "--allow-weak-key-signatures")
    assert "weak hash" in refused(work, sha1, pgp=(gpg.public(key),))


def test_of_several_signatures_one_good_one_by_a_configured_key_is_enough(work: Work, gpg: Gpg) -> None:
    first, second = gpg.key("first@example.invalid"), gpg.key("second@example.invalid")
    commit = gpg.commit(work, first, "Both", "--local-user", second)
    for each in (first, second):
        judge(work, commit, pgp=(gpg.public(each),))
    stranger = gpg.key("stranger@example.invalid")
    assert "is not among the configured ones" in refused(work, commit, pgp=(gpg.public(stranger),))


def test_a_signature_of_one_kind_isnt_looked_for_among_keys_of_the_other(work: Work, gpg: Gpg, tmp_path: Path) -> None:
    key, ssh = gpg.key("kinds@example.invalid"), ssh_key(tmp_path, "release")
    by_gpg = gpg.commit(work, key, "By gpg")
    assert "add the signer's key to the target's verify.pgp" in refused(work, by_gpg, ssh=(public(ssh),))
    by_ssh = signed_by_ssh(work, ssh, "By SSH")
    assert "add the signer's key to the target's verify.ssh" in refused(work, by_ssh, pgp=(gpg.public(key),))
    for commit in (by_gpg, by_ssh):
        judge(work, commit, ssh=(public(ssh),), pgp=(gpg.public(key),))


def test_keys_that_cant_be_used_are_all_named_by_their_field(gpg: Gpg, tmp_path: Path) -> None:
    key = gpg.key("private@example.invalid")
    gpg.key("old@example.invalid", "rsa2048", "never", "--cert-digest-algo", "SHA1", *at("20150101"))
    good, short = public(ssh_key(tmp_path, "release")), public(ssh_key(tmp_path, "short", "rsa", 1024))
    secret = gpg.run("--armor", "--export-secret-keys", key)
    block = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEZ\n-----END PGP PUBLIC KEY BLOCK-----\n"
    with pytest.raises(ConfigInvalid) as caught:
        TrustedKeys.of(
            Verify((good, short, "ssh-ed25519 AAAA"), (block, gpg.public(key), secret, gpg.public("old@example.invalid"))), "shop"
        )
    subjects = [problem.subject for problem in caught.value.problems]
    assert subjects == [f"target shop: verify.{place}" for place in ("ssh[1]", "ssh[2]", "pgp[0]", "pgp[2]", "pgp[3]")]
    assert "1024 bits" in str(caught.value)
    assert "renewed by gpg --quick-set-expire" in str(caught.value)
    assert "private key" in str(caught.value)
    with pytest.raises(ConfigInvalid, match="names no key"):
        TrustedKeys.of(Verify(), "shop")
