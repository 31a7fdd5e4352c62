"""Names of a tree: refused if any file system could read them otherwise; after git's fsck and `verify_path` (git: path.c). Pure."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable

from handler.model.advice import advice
from handler.model.errors import SourceRefused
from handler.model.tree import printable

Children = dict[str, tuple[int, str]]  # name -> mode and hex id, in git's order

MAX_NAME = 255
_ID = 20
_ODD, _LONGEST = re.compile(r"[^A-Za-z0-9_.+@=,-]"), 100
_SHORTEST = 24  # bytes of an entry: a digit, a space, a letter, NUL, 20 of the id
_PLAIN = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9._+@=,-]{0,99}")
_HFS_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
_NTFS_DOTGIT = re.compile(r"(\.git|git~[0-9]+)[. ]*(:.*)?", re.IGNORECASE | re.DOTALL)


def children_of(entries: Iterable[tuple[bytes, int, str]], path: str) -> Children:
    """Return what a tree at `path` holds, of (name, mode, hex id). Raises SourceRefused: a bad name, or two that differ only in case."""
    children = {checked_name(raw, path): (mode, oid) for raw, mode, oid in entries}
    _refuse_collisions(children, path)
    return children


def has_more(data: bytes, most: int) -> bool:
    """Return whether a tree object has more entries than so many, without parsing it, which takes ten times its bytes."""
    if len(data) <= most * _SHORTEST:
        return False
    at = 0
    for _ in range(most + 1):
        end = data.find(b"\0", at)
        if end < 0:
            return False
        at = end + 1 + _ID
    return True


def checked_name(raw: bytes, directory: str) -> str:
    """Return a name of a tree as text. Raises SourceRefused: it breaks a rule of `name_problem`."""
    if problem := name_problem(raw):
        name = raw.decode(errors="surrogateescape")
        is_checked_out = raw.strip(b".") and b"/" not in raw and not _stands_for_git(name)  # of no other name git makes a file
        fix = _renaming(directory, name, _plain(name)) if is_checked_out else ""
        raise SourceRefused.of(printable(posixpath.join(directory, name)), problem, fix=fix)
    return raw.decode()


def _plain(name: str) -> str:
    """Return a name that resembles another and breaks no rule."""
    plain = _ODD.sub("-", unicodedata.normalize("NFC", name))[:_LONGEST]
    return f"renamed-{plain.lstrip('.')}" if name_problem(plain.encode()) else plain


def _renaming(directory: str, name: str, better: str) -> str:
    """Return the command that renames a file or directory."""
    return advice("in a checkout: git mv -- {} {}", posixpath.join(directory, name), posixpath.join(directory, better))


def name_problem(raw: bytes) -> str:
    """Return what is wrong with a name; empty: nothing."""
    if _PLAIN.fullmatch(raw) and raw[:4].lower() != b"git~":
        return ""
    if len(raw) > MAX_NAME:
        return f"name is longer than {MAX_NAME} bytes"
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        return "name is not UTF-8"
    return _text_problem(name)


def _text_problem(name: str) -> str:
    if name in ("", ".", "..") or "/" in name:
        return "name is empty, '.', '..' or has a slash"
    if "\\" in name:
        return "name has a backslash, which separates directories on Windows"
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in name):
        return "name has a control character"
    if _stands_for_git(name):
        return "name stands for .git on some file systems"
    if not unicodedata.is_normalized("NFC", name):
        return "name is not in Unicode normal form C (git config core.precomposeUnicode true, then commit it again)"
    return ""


def _stands_for_git(name: str) -> bool:
    return bool(_NTFS_DOTGIT.fullmatch(name.translate(_HFS_IGNORED)))


def _refuse_collisions(names: Iterable[str], path: str) -> None:
    folded: dict[str, str] = {}
    for name in names:
        other = folded.setdefault(unicodedata.normalize("NFC", name.casefold()), name)
        if other != name:
            fix = _renaming(path, name, "-2".join(posixpath.splitext(name)))
            seen = f"{printable(other)} and {printable(name)} differ only in case"
            raise SourceRefused.of(printable(path) or "the repository's root", seen, fix=fix)


def refused(path: str, message: str) -> SourceRefused:
    """Return the error for a directory or a name in it."""
    return SourceRefused.of(printable(path) or "the repository's root", message)
