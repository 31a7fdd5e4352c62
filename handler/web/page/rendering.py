"""HTML of what views found, by Jinja: everything is escaped, and a name that a template doesn't get is an error.

Links lead to http and https alone, and only to where the configuration says git is; what else is written is shown as text.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from handler import __version__
from handler.app.times import ago, span, until
from handler.inspect.signs import FATES, FIELDS, INVENTORY, OBJECTS, Sign
from handler.model.numbers import counted, many
from handler.model.plan import Action
from handler.model.pull_request import lead_target
from handler.plan.gap import GOES, FieldState
from handler.state.record_format import seconds_of

Json = Mapping[str, Any]
S = TypeVar("S", bound=str)
STATIC = "/ui/static/"
TYPES = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
"""What is served of `static`, each under the digest of its content, so that browsers keep it."""


def render(template: str, **values: Any) -> str:
    """Return a page or a fragment. `template`: its file's name."""
    return _environment().get_template(template).render(**values)


def stranger_html(template: str, **values: Any) -> str:
    """Return a page for a visitor who hasn't signed in."""
    return render(template, visitor=None, csrf="", topic="", streams="", **values)


@cache
def _environment() -> Environment:
    loader = PackageLoader(__package__)
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False)
    made.filters |= {
        "ago": lambda stamp: ago(stamp, time.time()) if stamp else "",
        "until": lambda stamp: until(stamp, time.time()),
        "span": span,
        "lasting": lambda since: span(time.time() - since),
        "many": many,
        "counted": counted,
        "short": lambda commit: commit[:8],
        "lead": lead_target,
        "named": lambda author: author.partition(" <")[0],
        "branch": lambda revision: revision.removeprefix("refs/heads/"),
        "repository": lambda url: url.removesuffix(".git").partition("://")[2].partition("/")[2] or url,
        "cluster": _cluster,
        "first_line": lambda text: text.partition("\n")[0],
        "strip_of": strip_of,
    }
    made.globals |= {
        "asset": asset,
        "commit_address": commit_address,
        "repository_address": repository_address,
        "field_signs": FIELDS,
        "fate_signs": FATES,
        "inventory_signs": INVENTORY,
        "lasted": lasted,
        "object_signs": OBJECTS,
        "planned_writes": planned_writes,
        "version": __version__,
    }
    return made


def _cluster(name: str) -> str:
    """Write a cluster's name where there is little room: of a long path its end."""
    return re.sub(r"(kubeconfig )?/\S+(?=/[^/\s]+/[^/\s]+$)", "…", name)


def strip_of(counts: Mapping[str, int], signs: Mapping[S, Sign]) -> list[tuple[str, int, str]]:
    """Return the parts of a strip: of each state its colour, how many there are, and no key."""
    return [(sign.tone, counts[state], "") for state, sign in signs.items() if counts.get(state)]


def lasted(started: str, finished: str) -> str:
    """Say how long something took, or has taken so far; nothing where it hasn't begun."""
    if not started:
        return ""
    return span((seconds_of(finished) if finished else time.time()) - seconds_of(started))


@cache
def static(name: str) -> bytes:
    """Return a file of `static`."""
    return files(__package__).joinpath("static", name).read_bytes()


@cache
def asset(name: str) -> str:
    """Return the path of a static file, which changes with its content."""
    return f"{STATIC}{hashlib.sha256(static(name)).hexdigest()[:12]}/{name}"


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


WRITES = (Action.CREATE, Action.UPDATE, Action.RECREATE)
_LOUD = (FieldState.DIFFERS, FieldState.UNDECLARED)


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One object. `state`: of the gap; `fields`: those that change; `more`: how many aren't listed that may."""

    object: str
    state: str
    action: str
    fields: tuple[Json, ...]
    more: int


def planned_writes(plan: Json) -> tuple[PlannedWrite, ...]:
    """Return what a gap's next run would write: of each object the fields that change, and how many there is no room for."""
    return tuple(_write(each) for each in plan["objects"] if each["action"] in WRITES)


def _write(each: Json) -> PlannedWrite:
    changing: Sequence[Json] = [field for field in each["fields"] if field["state"] == FieldState.DIFFERS or field["why"] == GOES]
    listed = sum(field["state"] in _LOUD for field in each["fields"])
    more = sum(each["counts"].get(state, 0) for state in _LOUD) - listed
    return PlannedWrite(each["object"], each["state"], each["action"], tuple(changing), more)
