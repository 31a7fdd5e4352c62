"""A source that hands out a tree only if one target's keys signed its commit. Trees are shared between targets, verdicts never."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from handler.config.git_settings import Revision, Verify
from handler.model.errors import CommitUnverified, ConfigInvalid, Problem
from handler.model.refs import Head
from handler.source.fetched_tree import FetchedTree
from handler.source.git_objects import Accept, accept_any
from handler.source.signatures import openpgp, sshsig
from handler.source.signatures.openpgp import Certificate
from handler.source.signatures.signed_commit import SSH, SignedCommit, Unproven, split
from handler.source.signatures.sshsig import SshKey

K = TypeVar("K")


class Source(Protocol):
    """A git host: fetches commits and lets them be judged."""

    def head(self, revision: Revision, since: float = math.inf) -> Head:
        """Return what a revision names."""

    def fetch(self, sha: str, path: str = "", accept: Accept = accept_any) -> FetchedTree:
        """Return that commit's tree, if it is accepted."""


@dataclass(frozen=True, slots=True)
class TrustedKeys:
    """The public keys of one target. Any of them will do: several at once are how keys are rotated. `setting`: where they stand."""

    ssh: tuple[SshKey, ...]
    pgp: tuple[Certificate, ...]
    setting: str = ""

    @classmethod
    def of(cls, verify: Verify, target: str) -> TrustedKeys:
        """Read the configured keys of a target. Raises ConfigInvalid: each key that can't be used, by its field."""
        problems: list[Problem] = []
        ssh = _read(verify.ssh, sshsig.read_key, f"target {target}: verify.ssh", problems)
        blocks = _read(verify.pgp, openpgp.read_certificates, f"target {target}: verify.pgp", problems)
        if not verify.ssh and not verify.pgp:
            problems.append(Problem(f"target {target}: verify", "names no key", fix="list keys under ssh or pgp, or leave verify out"))
        if problems:
            raise ConfigInvalid(*problems)
        return cls(tuple(ssh), openpgp.merged(certificate for block in blocks for certificate in block), f"target {target}: verify")

    def check(self, sha: str, commit: bytes, tree: str) -> None:
        """Judge a raw commit object. Raises CommitUnverified: no configured key signed exactly this commit with this tree."""
        try:
            signed = split(commit)
            if not signed.payload.startswith(b"tree %s\n" % tree.encode()):
                raise Unproven("does not begin with the tree that it stands for")
            self._signer(signed)
        except Unproven as unproven:
            raise CommitUnverified.of(f"commit {sha}", str(unproven), place=self.setting, fix=unproven.fix) from None

    def _signer(self, signed: SignedCommit) -> str:
        kind, field, keys = ("an SSH", "ssh", self.ssh) if signed.kind == SSH else ("an OpenPGP", "pgp", self.pgp)
        if not keys:
            raise Unproven(f"has {kind} signature, but the target has no such key", f"add the signer's key to the target's verify.{field}")
        if signed.kind == SSH:
            return sshsig.verify(signed.payload, signed.signature, self.ssh).fingerprint
        return openpgp.verify(signed.payload, signed.signature, self.pgp)


def _read(texts: Sequence[str], read: Callable[[str], K], field: str, problems: list[Problem]) -> list[K]:
    found = []
    for number, text in enumerate(texts):
        try:
            found.append(read(text))
        except ValueError as error:
            problems.append(Problem(f"{field}[{number}]", str(error), fix="correct it, or take it out of the list"))
    return found


_COMMITS = 4
_LARGEST = 1 << 16  # bytes of a commit object that is kept; its tree is none of it


class VerifiedSource:
    """A git host as seen by one target that requires signatures; the last few commit objects are kept for `recheck`."""

    def __init__(self, source: Source, keys: TrustedKeys) -> None:
        self._source = source
        self._keys = keys
        self._accepted: dict[str, tuple[bytes, str]] = {}

    def head(self, revision: Revision, since: float = math.inf) -> Head:
        """Return what the host says a revision names, unverified."""
        return self._source.head(revision, since)

    def fetch(self, sha: str, path: str = "") -> FetchedTree:
        """Return a commit's tree. Raises CommitUnverified, and as the host's `fetch`."""
        return self._source.fetch(sha, path, self._check)

    def recheck(self, sha: str, path: str = "") -> None:
        """Judge an accepted commit by what counts now; it is fetched if it isn't kept. Raises CommitUnverified, and as `fetch`."""
        kept = self._accepted.get(sha)
        if kept:
            self._keys.check(sha, *kept)
        else:
            self.fetch(sha, path)

    def _check(self, sha: str, commit: bytes, tree: str) -> None:
        self._keys.check(sha, commit, tree)
        if len(commit) <= _LARGEST:
            others = [each for each in self._accepted.items() if each[0] != sha]
            self._accepted = dict([*others[1 - _COMMITS :], (sha, (commit, tree))])  # replaced, never altered: threads share it
