"""What a git checkout on disk says of itself: the remote it was cloned from and its branch, which `anneal init` suggests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dulwich.config import ConfigFile


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree.

    `inside`: the directory below `root`; `remote`: the URL of the branch's remote as git has it; `branch`: at a detached HEAD the
    host's default one, empty when git has noted none.
    """

    root: Path
    inside: str
    remote: str
    branch: str


def root_around(directory: Path) -> Path | None:
    """Return the root of the repository that a directory lies in, links resolved; None outside of one. A repository in it is its own."""
    whole = directory.resolve()
    return next((each for each in (whole, *whole.parents) if (each / ".git").exists()), None)


def checkout_around(directory: Path) -> Checkout | None:
    """Return the checkout that a directory lies in; None outside of one. No host is asked."""
    directory = directory.resolve()
    root = root_around(directory)
    if root is None:
        return None
    from dulwich.errors import FileFormatException, NotGitRepository  # noqa: PLC0415 - not needed outside a repository
    from dulwich.refs import HEADREF, LOCAL_BRANCH_PREFIX, SYMREF, Ref  # noqa: PLC0415 - the same
    from dulwich.repo import Repo  # noqa: PLC0415 - the same

    try:
        with Repo(str(root)) as repo:
            config = repo.get_config()
            _, _, branch = (repo.refs.read_ref(HEADREF) or b"").partition(SYMREF + LOCAL_BRANCH_PREFIX)
            remote = _value(config, (b"branch", branch), b"remote") or b"origin"
            if not branch:  # detached, as in CI: the host's default branch, as git clone has noted it
                tracked = b"refs/remotes/" + remote + b"/"
                _, _, branch = (repo.refs.read_ref(Ref(tracked + b"HEAD")) or b"").partition(SYMREF + tracked)
            inside = "" if directory == root else directory.relative_to(root).as_posix()
            url = _value(config, (b"remote", remote), b"url")
    except (NotGitRepository, FileFormatException, ValueError, OSError):
        return None
    return Checkout(root, inside, url.decode(errors="replace"), branch.decode(errors="replace"))


def _value(config: ConfigFile, section: tuple[bytes, bytes], name: bytes) -> bytes:
    try:
        return config.get(section, name)
    except KeyError:
        return b""
