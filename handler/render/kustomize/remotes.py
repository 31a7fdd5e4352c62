"""Whether kustomize would fetch what an entry says, and from where: as its own loader decides it. Pure.

    http://, https://                     a file (loader.IsRemoteFile), or else a repository
    github.com/org/repo/path?ref=v1       a repository (git.NewRepoSpecFromURL), also ssh://, file://, git@host:org/repo, git::https://

Law: what isn't remote may still be no file of the tree: the closure refuses that too, so that no unknown form is ever fetched.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import parse_qs

_SCHEMES = ("ssh://", "https://", "http://", "file://")
_USER = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*@")
_FILE = re.compile(r"https?:", re.IGNORECASE)
_PASSWORD = re.compile(r"(?<=//)[^/@]*@")
_ORGANISATION_AND_REPOSITORY = 2


@dataclass(frozen=True, slots=True)
class RemoteDirectory:
    """A directory of another repository. `url`: what git clones; `path`: below its root; `ref`: branch, tag or commit; empty: its HEAD."""

    url: str
    path: str
    ref: str


def shown(text: str) -> str:
    """Return an entry without the credentials that its URL may hold."""
    return _PASSWORD.sub("", text)


def is_remote_file(text: str) -> bool:
    """Whether kustomize asks for a file over HTTP."""
    return bool(_FILE.match(text))


def is_remote(text: str) -> bool:
    """Whether kustomize takes an entry that may be a file or a directory for something to fetch."""
    return "://" in text or is_remote_file(text) or remote_directory(text) is not None


def remote_directory(text: str) -> RemoteDirectory | None:
    """Return the directory of a repository that kustomize would clone; None: it takes the text for a path."""
    if text.startswith("/"):
        return None
    location, _, query = text.partition("?")
    host, rest = _host(location[len("git::") :] if location[:5].lower() == "git::" else location)
    parts = _split(rest, whole=host == "file://") if host else None
    if parts is None or not parts[0] or posixpath.normpath(parts[1].lstrip("/")).split("/")[0] == "..":
        return None
    asked = parse_qs(query)
    ref = next((asked[name][0] for name in ("ref", "version") if asked.get(name)), "")
    return RemoteDirectory(host + parts[0], parts[1].removeprefix("/"), ref)


def _host(text: str) -> tuple[str, str]:
    """Split off scheme, user and host, as kustomize writes them before it clones; an empty host: it is a path."""
    scheme = next((each for each in _SCHEMES if text[: len(each)].lower() == each), "")
    text = text[len(scheme) :]
    found = _USER.match(text)
    user = found[0] if found else ""
    text = text[len(user) :]
    github = text.lower().startswith(("github.com/", "github.com:"))
    if scheme == "file://":
        return scheme, user + text
    if not scheme and not (user or github):
        return "", text
    at = _separator(text, colons=not scheme)
    host, rest = (text[: at + 1], text[at + 1 :]) if at >= 0 else (text, "")
    if github and (scheme == "ssh://" or user):
        return f"{user}github.com:", rest
    return ("https://github.com/", rest) if github else (f"{scheme}{user}{host}" if host else "", rest)


def _separator(text: str, *, colons: bool) -> int:
    at, colon = text.find("/"), text.find(":") if colons else -1
    return colon if colons and (at == -1 or 0 < colon < at) else at


def _split(text: str, *, whole: bool) -> tuple[str, str] | None:
    """Return the path of the repository and the one in it; None: there is none."""
    if (at := text.find("_git/")) >= 0:
        name, _, below = text[at + 5 :].partition("/")
        return text[: at + 5] + name, below
    if (at := text.find("//")) >= 0:
        return text[:at], text[at + 2 :]
    if (at := text.find(".git")) >= 0:
        return text[: at + 4], text[at + 4 :]
    if whole:
        return text, ""
    parts = text.split("/")
    if len(parts) < _ORGANISATION_AND_REPOSITORY:
        return None
    return "/".join(parts[:_ORGANISATION_AND_REPOSITORY]), "/".join(parts[_ORGANISATION_AND_REPOSITORY:])
