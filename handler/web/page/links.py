"""Addresses that a browser may follow, made of what git and configuration say. Pure.

Law: only http and https, only to where the configuration says git is; what else is written is shown as text.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_COMMIT_PATHS = (
    (re.compile(r"(^|\.)bitbucket\."), "commits"),
    (re.compile(r"(^|\.)gitlab\."), "-/commit"),
    (re.compile(r"(^|\.)(github|gitea|forgejo|codeberg)\."), "commit"),
)
"""Where a git host shows a commit, by the host's name; of another one nothing is assumed."""
_SSH = re.compile(r"(?:ssh://)?(?:[^@/]+@)?(?P<host>[A-Za-z0-9.-]+)(?::\d+/|[:/])(?P<path>[^:]+?)/?$")
_SHA = re.compile(r"[0-9a-f]{40,64}")


def web_address(text: str) -> str:
    """Return an address that a link may lead to; empty: it isn't http or https, or holds a password."""
    try:
        parts = urlsplit(text)
        safe = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        return ""
    return text if safe and text.isprintable() and not set(text) & set(" \"'<>\\`") else ""


def repository_address(url: str) -> str:
    """Return where people look at a repository; empty: not known."""
    if url.startswith(("http://", "https://")):
        return web_address(url.removesuffix(".git"))
    found = _SSH.fullmatch(url)
    known = found and any(name.search(found["host"]) for name, _ in _COMMIT_PATHS)
    return web_address(f"https://{found['host']}/{found['path'].removesuffix('.git')}") if found and known else ""


def commit_address(url: str, commit: str) -> str:
    """Return where people look at a commit; empty: not known of this host."""
    place = repository_address(url)
    host = urlsplit(place).hostname or ""
    path = next((path for name, path in _COMMIT_PATHS if name.search(host)), "")
    return f"{place}/{path}/{commit}" if path and _SHA.fullmatch(commit) else ""
