"""HTML of what views found, by Jinja: everything is escaped, and a name that a template doesn't get is an error."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined

from handler import __version__
from handler.app.times import ago, span, until
from handler.inspect.signs import FATES, FIELDS, INVENTORY, OBJECTS, Sign
from handler.model.numbers import counted, many
from handler.model.pull_request import lead_target
from handler.state.record_format import seconds_of
from handler.web.page.links import commit_address, repository_address
from handler.web.page.planned_writes import planned_writes

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
