"""Renewed, rotated, expired and revoked OpenPGP keys, and several copies of one: `git verify-commit` with gpg judges each row, too.

git judges with a keyring that was made of the configured blocks alone, as they are configured.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from pysequoia import ArmorKind, armor

from infra.githost import Host, Work
from tests.rooms.source.verify_commit import git_believes, judge, refused
from tests.signing import Gpg, at

LONG_AGO, LATER, TODAY = (at(day) for day in ("20240101", "20240110", "20240301"))


@dataclass(frozen=True)
class Row:
    """A commit, the blocks that are configured, and what is said of it; empty: it counts."""

    commit: str
    blocks: tuple[str, ...]
    says: str = ""


@dataclass(frozen=True)
class Case:
    """One key of its own, in one clone."""

    gpg: Gpg
    work: Work

    def key(self, expire: str = "never", kind: str = "ed25519") -> str:
        return self.gpg.key("Release <release@example.invalid>", kind, expire, *LONG_AGO)

    def subkey(self, key: str, expire: str = "never", kind: str = "ed25519") -> str:
        self.gpg.run(*LONG_AGO, "--quick-add-key", key, kind, "sign", expire)
        return self.keys(key)[-1]

    def keys(self, key: str) -> list[str]:
        listed = self.gpg.run("--with-colons", "--list-keys", key)
        return [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr")]

    def commit(self, key: str, *flags: str) -> str:
        return self.gpg.commit(self.work, f"{key}!", "Signed", *(flags or LATER))

    def edit(self, key: str, *answers: str) -> None:
        self.gpg.run("--command-fd", "0", "--edit-key", key, stdin="\n".join(answers) + "\n")

    def revoke(self, key: str) -> None:
        text = (self.gpg.home / "openpgp-revocs.d" / f"{key}.rev").read_text()
        self.gpg.run("--import", stdin=text.replace(":-----BEGIN", "-----BEGIN"))

    def revoke_subkey(self, key: str, number: int = 1) -> None:
        self.edit(key, f"key {number}", "revkey", "y", "2", "", "y", "save")

    def public(self, key: str) -> str:
        return self.gpg.public(key)


@pytest.fixture
def case(host: Host) -> Iterator[Case]:
    with Gpg() as gpg:
        yield Case(gpg, Work.of(host, "shop").write("app.yaml", "kind: ConfigMap\n"))


def renewed(case: Case) -> list[Row]:
    key = case.key("1m")
    commit, old = case.commit(key), case.public(key)
    case.gpg.run("--quick-set-expire", key, "1y")
    new = case.public(key)
    gone = f"is signed by the OpenPGP key {key.lower()} of Release <release@example.invalid>, which expired on 2024-01-31"
    way = f"; its owner prolongs it: gpg --quick-set-expire {key.lower()} 1y; then put what gpg --armor --export {key.lower()} prints"
    return [Row(commit, (old,), gone + way), *(Row(commit, blocks) for blocks in ((new,), (old, new), (new, old), (old + new,)))]


def renewed_twice_and_without_end(case: Case) -> list[Row]:
    key = case.key("1m", "rsa3072")
    commit = case.commit(key)
    case.gpg.run(*LATER, "--quick-set-expire", key, "2024-02-01")
    short = case.public(key)
    case.gpg.run("--quick-set-expire", key, "0")
    return [Row(commit, (short,), "expired on 2024-02-01"), Row(commit, (case.public(key),)), Row(commit, (short, case.public(key)))]


def shortened(case: Case) -> list[Row]:
    """The newest self-signature decides, not the kindest."""
    key = case.key()
    commit, old = case.commit(key), case.public(key)
    case.gpg.run(*TODAY, "--quick-set-expire", key, "2024-04-01")
    new = case.public(key)
    return [Row(commit, (old,)), *(Row(commit, blocks, "expired on 2024-04-01") for blocks in ((new,), (old, new), (new, old)))]


def signed_while_it_was_expired(case: Case) -> list[Row]:
    key = case.key("1m")
    case.gpg.run("--quick-set-expire", key, "1y")
    return [Row(case.commit(key, *TODAY), (case.public(key),))]


def renewed_subkey(case: Case) -> list[Row]:
    key = case.key()
    subkey = case.subkey(key, "1m")
    commit, old = case.commit(subkey), case.public(key)
    case.gpg.run("--quick-set-expire", key, "1y", subkey)
    new = case.public(key)
    way = f"prolongs it: gpg --quick-set-expire {key.lower()} 1y {subkey.lower()}; then put what gpg --armor --export {key.lower()} prints"
    says = f"OpenPGP key {subkey.lower()} of Release <release@example.invalid>, which expired on 2024-01-31; its owner {way}"
    return [Row(commit, (old,), says), Row(commit, (new,)), Row(commit, (old, new)), Row(commit, (new, old))]


def renewed_primary_of_a_subkey(case: Case) -> list[Row]:
    key = case.key("1m")
    subkey = case.subkey(key)
    commit, old = case.commit(subkey), case.public(key)
    case.gpg.run("--quick-set-expire", key, "1y")
    return [Row(commit, (old,), f"gpg --quick-set-expire {key.lower()} 1y; then"), Row(commit, (case.public(key),))]


def both_expired(case: Case) -> list[Row]:
    key = case.key("1m")
    subkey = case.subkey(key, "2w")
    way = f"gpg --quick-set-expire {key.lower()} 1y && gpg --quick-set-expire {key.lower()} 1y {subkey.lower()}; then"
    return [Row(case.commit(subkey), (case.public(key),), way)]


def rotated(case: Case) -> list[Row]:
    key = case.key()
    first = case.subkey(key)
    by_first, old = case.commit(first), case.public(key)
    second = case.subkey(key)
    by_second, both = case.commit(second, *TODAY), case.public(key)
    rows = [Row(by_first, (both,)), Row(by_second, (both,)), Row(by_second, (old,), "which is not among the configured ones")]
    case.revoke_subkey(key)
    revoked = case.public(key)
    return [
        *rows,
        Row(by_second, (revoked,)),
        *(Row(by_first, blocks, "is revoked since 20") for blocks in ((revoked,), (both, revoked), (revoked, old))),
    ]


def subkey_of_another_kind(case: Case) -> list[Row]:
    key = case.key("never", "rsa3072")
    commits = [case.commit(case.subkey(key, "never", kind)) for kind in ("nistp256/ecdsa", "nistp521/ecdsa", "rsa2048", "dsa2048")]
    case.gpg.run("--quick-add-key", key, "cv25519", "encr")
    return [Row(commit, (case.public(key),)) for commit in commits]


def revoked(case: Case) -> list[Row]:
    key = case.key()
    subkey = case.subkey(key)
    commits, old = (case.commit(key), case.commit(subkey)), case.public(key)
    case.revoke(key)
    new = case.public(key)
    says = "is revoked since 20"
    return [Row(commit, blocks, says) for commit in commits for blocks in ((new,), (old, new), (new, old), (old + new,))]


def revoked_and_then_renewed(case: Case) -> list[Row]:
    """No later self-signature takes a revocation back."""
    key = case.key("1m")
    commit = case.commit(key)
    with Gpg() as another:
        another.run("--import", stdin=case.gpg.run("--armor", "--export-secret-keys", key))
        case.revoke(key)
        another.run("--quick-set-expire", key, "1y")
        return [Row(commit, blocks, "is revoked since 20") for blocks in both_ways(case.public(key), another.public(key))]


def both_ways(one: str, other: str) -> list[tuple[str, str]]:
    return [(one, other), (other, one)]


def one_user_id_revoked(case: Case) -> list[Row]:
    key = case.key()
    commit = case.commit(key)
    case.gpg.run(*LATER, "--quick-add-uid", key, "new@example.invalid")
    case.gpg.run("--quick-revoke-uid", key, "Release <release@example.invalid>")
    return [Row(commit, (case.public(key),))]


def a_revoked_user_id_prolongs_nothing(case: Case) -> list[Row]:
    key = case.key("1m")
    commit = case.commit(key)
    case.gpg.run(*LATER, "--quick-add-uid", key, "new@example.invalid")
    with Gpg() as another:
        another.run("--import", stdin=case.gpg.run("--armor", "--export-secret-keys", key))
        another.run("--quick-revoke-uid", key, "new@example.invalid")
        another.run(*TODAY, "--quick-set-expire", key, "2024-04-01")
        return [Row(commit, (another.public(key),), "expired on 2024-04-01")]


def every_user_id_revoked(case: Case) -> list[Row]:
    key = case.key()
    commit = case.commit(key)
    case.gpg.run(*LATER, "--quick-add-uid", key, "new@example.invalid")
    with Gpg() as another:
        another.run("--import", stdin=case.gpg.run("--armor", "--export-secret-keys", key))
        another.run("--quick-revoke-uid", key, "new@example.invalid")
        case.gpg.run("--quick-revoke-uid", key, "Release <release@example.invalid>")
        return [Row(commit, blocks) for blocks in both_ways(case.public(key), another.public(key))]


def may_not_sign_any_more(case: Case) -> list[Row]:
    key = case.key()
    commit, old = case.commit(key), case.public(key)
    case.edit(key, "change-usage", "S", "Q", "save")
    return [
        Row(commit, (old,)),
        *(Row(commit, blocks, "may not sign, by its newest self-signature") for blocks in both_ways(old, case.public(key))),
    ]


def dated_before_its_key(case: Case) -> list[Row]:
    key = case.key()
    commit = case.commit(key, *at("20231201"), "--ignore-time-conflict")
    return [Row(commit, (case.public(key),), "was made on 2024-01-01, after the signature's date 2023-12-01; set the signer's clock")]


def dated_in_the_future(case: Case) -> list[Row]:
    """A date proves nothing, and so refuses nothing, as for gpg."""
    key = case.key()
    return [Row(case.commit(key, *at("20700101")), (case.public(key),))]


def signed_by_a_strangers_subkey(case: Case) -> list[Row]:
    """A subkey counts if both keys say so: here a subkey stands beside a key that isn't its own, as a key server may serve it."""
    key = case.key()
    commit = case.commit(case.subkey(key))
    stranger = case.gpg.key("stranger@example.invalid")
    case.gpg.run("--quick-add-key", stranger, "ed25519", "sign")
    mine, theirs = (
        subprocess.run([str(case.gpg.program), "--export", each], capture_output=True, check=True).stdout for each in (stranger, key)
    )
    subkey = theirs[theirs.rindex(b"\xb8\x33\x04") :]  # its packet, and what the stranger's key says of it
    return [Row(commit, (armor(mine + subkey, ArmorKind.PublicKey),), "isn't bound for signing over SHA-256 or better")]


def with_a_critical_notation(case: Case) -> list[Row]:
    key = case.key()
    critical, other = (case.commit(key, *LATER, "--sig-notation", f"{mark}n@example.invalid=x") for mark in ("'!'", ""))
    return [
        Row(critical, (case.public(key),), "has a malformed OpenPGP signature"),
        Row(other, (case.public(key),)),
    ]


CASES: tuple[Callable[[Case], list[Row]], ...] = (
    renewed,
    renewed_twice_and_without_end,
    shortened,
    signed_while_it_was_expired,
    renewed_subkey,
    renewed_primary_of_a_subkey,
    both_expired,
    rotated,
    subkey_of_another_kind,
    revoked,
    revoked_and_then_renewed,
    one_user_id_revoked,
    a_revoked_user_id_prolongs_nothing,
    every_user_id_revoked,
    may_not_sign_any_more,
    dated_before_its_key,
    dated_in_the_future,
    signed_by_a_strangers_subkey,
    with_a_critical_notation,
)


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__.replace("_", "-"))
def test_a_commit_verifies_exactly_when_git_verify_commit_says_so(case: Case, make: Callable[[Case], list[Row]]) -> None:
    for row in make(case):
        with Gpg() as configured:
            for block in row.blocks:
                configured.run("--import", stdin=block)
            assert git_believes(case.work, row.commit, "-c", f"gpg.program={configured.program}") == (not row.says), row
        if row.says:
            said = refused(case.work, row.commit, pgp=row.blocks)
            assert row.says in said
            assert "did not sign" not in said
        else:
            judge(case.work, row.commit, pgp=row.blocks)
