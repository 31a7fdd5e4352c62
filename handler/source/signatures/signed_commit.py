"""A commit object -> its payload and signature, cut as git does (commit.c), but of two signatures none counts. Pure."""

from __future__ import annotations

from dataclasses import dataclass

SSH = "SSH SIGNATURE"
PGP = "PGP SIGNATURE"
_KINDS = {b"-----BEGIN SSH SIGNATURE-----": SSH, b"-----BEGIN PGP SIGNATURE-----": PGP, b"-----BEGIN PGP MESSAGE-----": PGP}
_OURS = b"gpgsig"
_OTHERS = b"gpgsig-sha256"  # of the same commit in a repository of SHA-256 ids: neither signed nor looked at here
_LONGEST = 65536
ANEW = "sign it anew: git commit --amend -S"  # the way out of most of what a signature can lack


class Unproven(Exception):
    """No good signature by a configured key; says in our words what was found instead. `fix`: the way out."""

    def __init__(self, found: str, fix: str = "") -> None:
        super().__init__(found)
        self.fix = fix


class Octets:
    """Reads from the front of bytes; ValueError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def __bool__(self) -> bool:
        return bool(self._left)

    def take(self, count: int) -> bytes:
        """Read so many."""
        if count > len(self._left):
            raise ValueError("ends too early")
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def number(self, width: int) -> int:
        """Read a number of so many octets, the highest first."""
        return int.from_bytes(self.take(width), "big")

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.take(len(self._left))

    def end(self) -> None:
        """Refuse that anything is left."""
        if self._left:
            raise ValueError("something follows")


@dataclass(frozen=True, slots=True)
class SignedCommit:
    """`payload`: the bytes that were signed. `signature`: as the header holds it, armored. `kind`: SSH or PGP."""

    payload: bytes
    signature: bytes
    kind: str


def split(commit: bytes) -> SignedCommit:
    """Cut the signature out of a raw commit object. Raises Unproven: none, more than one, or none of a known kind."""
    header, end, message = commit.partition(b"\n\n")
    kept: list[bytes] = []
    signatures: list[list[bytes]] = []
    into = kept
    for line in header.split(b"\n"):
        name, space, value = line.partition(b" ")
        if not name and space:  # begins with a space: goes on with the header above
            into.append(value if into is not kept else line)
        elif name.startswith(_OURS):
            into = [value]
            if name == _OURS:
                signatures.append(into)
            elif name != _OTHERS:
                raise Unproven("has a header that only looks like a signature", ANEW)
        else:
            into = kept
            kept.append(line)
    return _judged(b"\n".join(kept) + end + message, signatures)


def _judged(payload: bytes, signatures: list[list[bytes]]) -> SignedCommit:
    if not signatures:
        raise Unproven("is not signed", "sign it: git commit --amend -S")
    if len(signatures) > 1:
        raise Unproven(f"carries {len(signatures)} signatures, which git would run into one", ANEW)
    signature = b"\n".join(signatures[0]) + b"\n"
    kind = _KINDS.get(signature.partition(b"\n")[0].strip(), "")
    if not kind:
        raise Unproven("is signed neither with SSH nor with OpenPGP", "sign it by one of them: git config gpg.format ssh")
    if len(signature) > _LONGEST:
        raise Unproven(f"has a signature of more than {_LONGEST} bytes", ANEW)
    return SignedCommit(payload, signature, kind)
