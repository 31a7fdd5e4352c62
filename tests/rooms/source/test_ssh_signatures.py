"""Against signatures as git and ssh-keygen make them; `git verify-commit` is the oracle."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handler.config.git_settings import Revision, Verify
from handler.model.errors import CommitUnverified, RefNotFound
from handler.source.signatures.signed_commit import split
from handler.source.signatures.sshsig import dearmored
from handler.source.signatures.verified_source import TrustedKeys, VerifiedSource
from infra.githost import Host, Work
from tests.rooms.source.open_repository import opened
from tests.rooms.source.verify_commit import git_believes, judge, refused, rewritten
from tests.signing import SSH, public, raw, signed_by_ssh, ssh_key


@pytest.fixture
def work(host: Host) -> Work:
    return Work.of(host, "shop").write("app.yaml", "kind: ConfigMap\n")


def allowed(work: Work, *keys: Path) -> tuple[str, ...]:
    signers = work.directory / ".git" / "signers"
    signers.write_text("".join(f"anneal@example.invalid {public(key)}\n" for key in keys))
    return (*SSH, "-c", f"gpg.ssh.allowedSignersFile={signers}")


# --- SSH
@pytest.mark.parametrize(("kind", "bits"), [("ed25519", 0), ("ecdsa", 256), ("ecdsa", 384), ("ecdsa", 521), ("rsa", 2048), ("rsa", 4096)])
def test_a_commit_signed_by_a_configured_ssh_key_counts_as_it_does_for_git(work: Work, tmp_path: Path, kind: str, bits: int) -> None:
    key, other = ssh_key(tmp_path, "release", kind, bits), ssh_key(tmp_path, "other")
    commit = signed_by_ssh(work, key, "Signed\n\nwith a body\n")
    judge(work, commit, ssh=(public(other), public(key)))
    assert git_believes(work, commit, *allowed(work, other, key))
    assert "is not among the configured ones" in refused(work, commit, ssh=(public(other),))
    assert not git_believes(work, commit, *allowed(work, other))


def test_an_unknown_ssh_key_is_named_by_the_fingerprint_that_ssh_keygen_prints(work: Work, tmp_path: Path) -> None:
    key, other = ssh_key(tmp_path, "release"), ssh_key(tmp_path, "other")
    printed = subprocess.run(["ssh-keygen", "-l", "-f", str(key)], check=True, capture_output=True, text=True).stdout.split()[1]
    assert printed in refused(work, signed_by_ssh(work, key, "Signed"), ssh=(public(other),))


def test_an_unsigned_commit_is_refused_with_the_way_to_sign_it(work: Work, tmp_path: Path) -> None:
    said = refused(work, work.commit("Unsigned"), ssh=(public(ssh_key(tmp_path, "release")),))
    assert "is not signed; sign it: git commit --amend -S" in said


def test_any_change_to_a_signed_commit_breaks_its_signature(work: Work, tmp_path: Path) -> None:
    key = ssh_key(tmp_path, "release")
    data = raw(work, signed_by_ssh(work, key, "Signed"))
    other_tree = work.git("write-tree") if work.write("b", "x").git("add", "-A") is not None else ""
    for altered in (
        data.replace(b"Signed", b"signed"),
        data + b"\n",
        data.replace(b"author anneal", b"author Anneal"),
        data.replace(data[5:45], other_tree.encode()),
        data.replace(b"\ngpgsig ", b"\nparent " + b"1" * 40 + b"\ngpgsig "),
    ):
        assert altered != data
        commit = rewritten(work, altered)
        assert "did not sign this content" in refused(work, commit, ssh=(public(key),))
        assert not git_believes(work, commit, *allowed(work, key))


def test_a_signature_made_for_a_file_is_none_of_a_commit(work: Work, tmp_path: Path) -> None:
    key = ssh_key(tmp_path, "release")
    data = raw(work, work.commit("Unsigned"))
    made = subprocess.run(["ssh-keygen", "-Y", "sign", "-n", "file", "-f", str(key)], input=data, check=True, capture_output=True).stdout
    header = b"gpgsig " + made.rstrip(b"\n").replace(b"\n", b"\n ")
    commit = rewritten(work, data.replace(b"\n\n", b"\n" + header + b"\n\n", 1))
    assert "made for something else than git" in refused(work, commit, ssh=(public(key),))
    assert not git_believes(work, commit, *allowed(work, key))


def test_a_signature_by_a_certificate_is_refused_by_its_fingerprint(work: Work, tmp_path: Path) -> None:
    authority, key = ssh_key(tmp_path, "authority"), ssh_key(tmp_path, "release")
    subprocess.run(["ssh-keygen", "-q", "-s", str(authority), "-I", "x", "-n", "x", f"{key}.pub"], check=True, capture_output=True)
    commit = signed_by_ssh(work, key.with_name("release-cert.pub"), "Signed")
    assert b"cert-v01" in dearmored(split(raw(work, commit)).signature)
    assert "is not among the configured ones" in refused(work, commit, ssh=(public(key),))


def test_a_commit_signed_twice_is_refused(work: Work, tmp_path: Path) -> None:
    key = ssh_key(tmp_path, "release")
    data = raw(work, signed_by_ssh(work, key, "Signed"))
    header = data[data.index(b"gpgsig ") : data.index(b"-----END SSH SIGNATURE-----") + 28]
    assert "carries 2 signatures" in refused(work, rewritten(work, data.replace(header, header * 2)), ssh=(public(key),))


def test_a_merge_of_a_signed_tag_and_an_encoding_header_are_part_of_what_is_signed(work: Work, tmp_path: Path) -> None:
    key = ssh_key(tmp_path, "release")
    work.commit("First")
    work.git("checkout", "-q", "-b", "side")
    work.write("side", "x").commit("Side")
    signing = (*SSH, "-c", f"user.signingkey={key}")
    work.git(*signing, "tag", "-s", "v1", "-m", "one")
    work.git("checkout", "-q", "main")
    work.write("main", "x").commit("Main")
    work.git(
        *SSH, "-c", f"user.signingkey={key}", "-c", "i18n.commitEncoding=ISO-8859-1", "merge", "-q", "-S", "--no-ff", "-m", "Merge", "v1"
    )
    commit = work.head()
    data = raw(work, commit)
    assert b"\nmergetag object" in data
    assert b"\nencoding ISO-8859-1" in data
    judge(work, commit, ssh=(public(key),))
    assert git_believes(work, commit, *allowed(work, key))
    altered = rewritten(work, data.replace(b"\n tag v1", b"\n tag v2"))
    assert "did not sign this content" in refused(work, altered, ssh=(public(key),))


# --- what exactly is signed
SIGNATURE = b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\n"
HEAD = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n"
CUTS = {
    "plain": HEAD + SIGNATURE + b"\nSubject\n",
    "in front": HEAD.replace(b"author", SIGNATURE + b"author") + b"\nSubject\n",
    "no message": HEAD + SIGNATURE + b"\n",
    "a message like a header": HEAD + SIGNATURE + b"\ngpgsig x\n y\n\ngpgsig z\n",
    "the other signature": HEAD + b"gpgsig-sha256 -----BEGIN PGP SIGNATURE-----\n x\n" + SIGNATURE + b"\nSubject\n",
    "the other one behind": HEAD + SIGNATURE + b"gpgsig-sha256 y\n x\nencoding x\n\nSubject\n",
    "headers behind": HEAD + SIGNATURE + b"mergetag object 1\n type commit\n gpgsig x\n \n text\nencoding latin1\n\nSubject\n",
    "not text": HEAD + SIGNATURE + b"\n\xff\x00\r\n\n\n",
    "no newline at the end": HEAD + SIGNATURE + b"\nSubject",
}


@pytest.mark.parametrize("cut", CUTS)
def test_what_is_signed_is_what_git_hands_to_gpg(work: Work, tmp_path: Path, cut: str) -> None:
    program = tmp_path / "gpg"
    program.write_text(
        f'#!/bin/sh\nfor last; do prev=$sig; sig=$last; done\ncp "$prev" {tmp_path}/signature\ncat >{tmp_path}/payload\nexit 1\n'
    )
    program.chmod(0o700)
    commit = rewritten(work, CUTS[cut])
    assert not git_believes(work, commit, "-c", f"gpg.program={program}")
    signed = split(raw(work, commit))
    assert signed.payload == (tmp_path / "payload").read_bytes()
    assert signed.signature == (tmp_path / "signature").read_bytes()


# --- through the host
def test_a_commit_cached_for_one_target_isnt_believed_for_another_that_asks_for_signatures(host: Host, work: Work, tmp_path: Path) -> None:
    key = ssh_key(tmp_path, "release")
    unsigned = work.commit("Unsigned")
    signed = signed_by_ssh(work.write("b", "x"), key, "Signed")
    work.push()
    with opened(host.url_of("shop")) as git:
        strict = VerifiedSource(git, TrustedKeys.of(Verify((public(key),)), "strict"))
        assert git.fetch(unsigned).commit.subject == "Unsigned"
        before = len(host.requests)
        for path in ("", "deploy"):
            with pytest.raises(CommitUnverified, match="is not signed"):
                strict.fetch(unsigned, path)
        assert len(host.requests) == before  # it was in the cache, and judged all the same
        assert strict.head(Revision(branch="main")).commit == signed
        assert strict.fetch(signed) is git.fetch(signed)
        with pytest.raises(RefNotFound):
            strict.fetch("1" * 40)


def test_a_refused_head_is_fetched_once_and_judged_at_every_look(host: Host, work: Work, tmp_path: Path) -> None:
    """Fifty targets look at an unsigned head at every tick; another target may take it, and a third one has other keys."""
    key, stranger = ssh_key(tmp_path, "release"), ssh_key(tmp_path, "stranger")
    head = signed_by_ssh(work, key, "Signed by somebody else")
    work.push()
    with opened(host.url_of("shop")) as git:
        strict = VerifiedSource(git, TrustedKeys.of(Verify((public(stranger),)), "strict"))
        for _ in range(3):
            with pytest.raises(CommitUnverified, match="is not among the configured ones"):
                strict.fetch(head)
        assert VerifiedSource(git, TrustedKeys.of(Verify((public(key),)), "other")).fetch(head).commit.sha == head
        with pytest.raises(CommitUnverified):
            strict.fetch(head)
    assert len([request for request in host.requests if b"command=fetch" in request.body]) == 1


def test_nothing_of_an_unverified_commit_is_read_not_even_its_evil_tree(host: Host, work: Work, tmp_path: Path) -> None:
    work.commit("First")
    blob = bytes.fromhex(work.git("rev-parse", "HEAD:app.yaml"))
    tree = work.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=b"100644 ..\0" + blob)
    evil = work.git("commit-tree", tree, "-m", "Evil")
    work.push(force=True, ref=f"{evil}:refs/heads/main")
    with opened(host.url_of("shop")) as git, pytest.raises(CommitUnverified):
        VerifiedSource(git, TrustedKeys.of(Verify((public(ssh_key(tmp_path, "release")),)), "strict")).fetch(evil)
