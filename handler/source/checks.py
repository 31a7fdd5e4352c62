"""Tree objects under suspicion: a name that could mean something else to any file system is refused. Pure.

dulwich's `Tree.check` covers the format: modes, order, duplicates, `.`, `..`, `.git`, slashes. What it leaves open is here, after
git's own fsck and `verify_path` (git: path.c, `is_hfs_dotgit`, `is_ntfs_dotgit`), so that a renderer that writes files to disk meets
only plain names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from dulwich.errors import ObjectFormatException
from dulwich.object_format import SHA1
from dulwich.objects import Tree, parse_tree

from handler.model.errors import SourceRefused
from handler.model.tree import printable

Children = dict[str, tuple[int, str]]
"""Name -> mode and hex id, in git's order."""

MAX_NAME = 255
_SHORTEST = 24  # bytes of an entry: a digit, a space, a letter, NUL, 20 of the id
_PLAIN = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9._+@=,-]{0,99}")
_HFS_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
_NTFS_DOTGIT = re.compile(r"(\.git|git~[0-9]+)[. ]*(:.*)?", re.IGNORECASE | re.DOTALL)


def read_tree(data: bytes, path: str) -> Children:
    """Parse and check one tree object.

    `path`: where it was reached, for the error only.

    Raises:
        SourceRefused: any entry breaks a rule; the name is shown escaped.
    """
    try:
        tree = Tree.from_string(data)
        tree.check()
        entries = list(parse_tree(data, SHA1.oid_length, strict=True))
    except (ObjectFormatException, ValueError, AssertionError) as error:
        raise _refused(path, f"git tree is malformed: {printable(_said(error))}") from None
    children: Children = {}
    for raw, mode, oid in entries:
        children[checked_name(raw, path)] = (mode, oid.decode())
    _refuse_collisions(children, path)
    return children


def has_more(data: bytes, most: int) -> bool:
    """Say whether a tree object has more entries than so many; parsing them takes ten times their bytes, counting nothing."""
    if len(data) <= most * _SHORTEST:
        return False
    at = 0
    for _ in range(most + 1):
        end = data.find(b"\0", at)
        if end < 0:
            return False
        at = end + 1 + SHA1.oid_length
    return True


def checked_name(raw: bytes, directory: str) -> str:
    """Return a name of a tree as text.

    Raises:
        SourceRefused: it breaks a rule of `name_problem`.
    """
    if problem := name_problem(raw):
        shown = printable(raw.decode(errors="surrogateescape"))
        raise _refused(f"{directory}/{shown}" if directory else shown, problem)
    return raw.decode()


def name_problem(raw: bytes) -> str:
    """Say what is wrong with a name; empty: nothing."""
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
    """Say what is wrong with a name that is text."""
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        return "name is empty, '.', '..' or has a slash or backslash"
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in name):
        return "name has a control character"
    if _NTFS_DOTGIT.fullmatch(name.translate(_HFS_IGNORED)):
        return "name stands for .git on some file systems"
    if not unicodedata.is_normalized("NFC", name):
        return "name is not in Unicode normal form C (git config core.precomposeUnicode true, then commit it again)"
    return ""


def _refuse_collisions(names: Iterable[str], path: str) -> None:
    """Refuse two names that are one on a file system without case."""
    folded: dict[str, str] = {}
    for name in names:
        other = folded.setdefault(unicodedata.normalize("NFC", name.casefold()), name)
        if other != name:
            raise _refused(path, f"{printable(other)} and {printable(name)} differ only in case")


def _refused(path: str, message: str) -> SourceRefused:
    return SourceRefused.of(printable(path) or "the repository's root", message)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
