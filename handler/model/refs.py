"""Git's rules for ref names and commit ids (git-check-ref-format(1)). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Head:
    """What a revision names now. `ref`: by which full ref name, empty for a fixed commit; `oid`: that ref's own id, an annotated tag's."""

    commit: str
    ref: str = ""
    oid: str = ""

    @property
    def tag(self) -> str:
        """The tag's name, empty for anything else."""
        return self.ref.removeprefix("refs/tags/") if self.ref.startswith("refs/tags/") else ""


def is_commit_id(text: str) -> bool:
    """Say whether this is a full SHA-1 id as git writes it: 40 lower-case hex digits."""
    return _COMMIT.fullmatch(text) is not None


def ref_problem(ref: str) -> str:
    """Say what is wrong with a full ref name (`refs/heads/main`); empty: nothing."""
    if not ref.startswith("refs/") or ref.count("/") < 2:
        return "is not a full ref name such as refs/heads/main"
    if found := _FORBIDDEN.search(ref):
        return f"has the character {found.group()!r}, which git forbids"
    if ".." in ref or "@{" in ref:
        return f"has {'..' if '..' in ref else '@{'!r}, which git forbids"
    if len(ref.encode(errors="surrogatepass")) > 1024:
        return "is longer than 1024 bytes"
    return next((problem for part in ref.split("/") if (problem := _part_problem(part))), "")


def _part_problem(part: str) -> str:
    if not part:
        return "has an empty part"
    if part.startswith((".", "-")):
        return f"has a part that starts with {part[0]!r}, which git forbids"
    if part.endswith((".", ".lock")):
        return "has a part that ends with '.' or '.lock', which git forbids"
    return ""
