"""anneal.lock: which bytes charts from elsewhere must have, written in git; and what charts of a Chart.yaml come from elsewhere.

    charts:
    - url: https://charts.example.com/stable     as the target or Chart.yaml names it
      name: web                                  none for oci://, whose URL ends in it
      range: ^1.2                                what is asked for, where that is a range
      version: 1.2.7
      digest: sha256:…                           of the archive

Law: a lock decides versions by equality of what is asked, never by comparing versions: one that no longer fits is refused, not passed by.
`lock_entries` and `dependencies` run in the render child.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handler.config.value_formats import FORMS
from handler.model.errors import ManifestInvalid, Problem
from handler.model.render import ChartReference, KnownChart, chart_identity
from handler.model.tree import printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.frames import decode, encode

if TYPE_CHECKING:
    from handler.render.sandbox import Sandbox

LOCK = "anneal.lock"
MAX_LOCKED = 1000
RELOCK = "run `anneal vendor DIR --lock` on the directory and commit what it writes"
_FIX = f"let `anneal vendor DIR --lock` write {LOCK}"
_FIELDS = ("url", "name", "range", "version", "digest")
_NEEDED = ("url", "version", "digest")
_TEXT = "a text"


def read_lock(sandbox: Sandbox, data: bytes, path: str) -> tuple[KnownChart, ...]:
    """Return the entries of a lock, each with its place. Raises ManifestInvalid: every mistake with its line; RenderFailed."""
    rows = _read(sandbox, "chart-lock", data, path)
    return tuple(KnownChart(url, name, asked or version, version, digest, place=place) for url, name, asked, version, digest, place in rows)


def read_dependencies(sandbox: Sandbox, data: bytes, path: str) -> tuple[ChartReference, ...]:
    """Return the dependencies of a Chart.yaml, Chart.lock or requirements.yaml that charts/ need not hold. Raises as `read_lock`.

    Those of `file://` are in the same checkout.
    """
    rows = _read(sandbox, "chart-dependencies", data, path)
    return tuple(ChartReference(url, name, version, place=place) for url, name, _, version, _, place in rows)


def locked(reference: ChartReference, lock: Sequence[KnownChart]) -> ChartReference:
    """Return a reference with the version and digest that a lock gives it; one with a digest of its own, or that isn't locked, as it is.

    Raises ManifestInvalid: the chart is locked, but not for what is asked now.
    """
    if reference.digest:
        return reference
    wanted = chart_identity(reference.url, reference.name)
    same = [each for each in lock if chart_identity(each.url, each.name) == wanted]
    for each in same:
        if each.asked == reference.version:
            return replace(reference, version=each.version, digest=each.digest)
    if same:
        subject = f"chart {printable(reference.name or reference.url)}"
        seen = f"{LOCK} has it for {same[0].asked} ({same[0].place}), and {printable(reference.version, 80)} is asked for"
        raise ManifestInvalid(Problem(subject, seen, reference.place, RELOCK))
    return reference


Row = tuple[str, str, str, str, str, str]


def _read(sandbox: Sandbox, function: str, data: bytes, path: str) -> list[Row]:
    found = sandbox.run(function, {"path": path}, [data], _decode, subject=path)
    problems = [each for each in found if isinstance(each, Problem)]
    if problems:
        raise ManifestInvalid(*problems)
    return [each for each in found if not isinstance(each, Problem)]


def _decode(frame: bytes) -> Row | Problem:
    if frame[:1] == b"P":
        problem = decode(frame)
        if isinstance(problem, Problem):
            return problem
    facts = json.loads(frame)
    if isinstance(facts, list) and len(facts) == 6 and all(isinstance(fact, str) and len(fact) <= 5000 for fact in facts):
        url, name, asked, version, digest, place = facts
        return url, name, asked, version, digest, place
    raise ValueError("no entry of a lock")


# --- in the child
def lock_entries(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the entries of a lock, or its mistakes. Options: `path`: of the one part."""
    yield from map(_encoded, _listed(parts[0], options["path"], "charts", _locked))


def dependencies(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the dependencies of a Chart.yaml that name a repository, or mistakes. Options: `path`: of the one part."""
    yield from map(_encoded, _listed(parts[0], options["path"], "dependencies", _dependency))


def _encoded(row: Row | Problem) -> bytes:
    return encode(row) if isinstance(row, Problem) else json.dumps(row).encode()


def _listed(data: bytes, path: str, key: str, read: Any) -> Iterator[Row | Problem]:
    """Yield what is read of each entry of a list in the one document of a file."""
    for document in documents(data, path):
        if isinstance(document, Problem):
            yield document
            continue
        entries = document.value.get(key) if isinstance(document.value, dict) else None
        if entries is not None and not isinstance(entries, list):
            yield Problem(key, "isn't a list", document.place(), _FIX)
            continue
        if len(entries or ()) > MAX_LOCKED:
            yield Problem(key, f"has more than {MAX_LOCKED:,} entries", document.place())
            continue
        for entry in entries or ():
            yield from read(entry, document)


def _locked(entry: Any, document: Document) -> Iterator[Row | Problem]:
    place = document.place(entry)
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name, ""), str) for name in _FIELDS):
        yield Problem(LOCK, f"an entry is a mapping of texts: {', '.join(_FIELDS)}", place, _FIX)
        return
    unknown = sorted(set(entry) - set(_FIELDS))
    if unknown:
        yield Problem(f"key {printable(unknown[0], 80)}", "isn't known", place, _FIX)
    texts = {name: entry.get(name, "") for name in _FIELDS}
    formats = {
        "url": "ociUrl" if texts["url"].startswith("oci:") else "chartUrl",
        "name": "chartName",
        "range": "chartVersion",
        "version": "chartVersion",
        "digest": "sha256",
    }
    for name, text in texts.items():
        if text or name in _NEEDED:
            wrong = FORMS[formats[name]].complaint(text)
            if wrong:
                yield Problem(name, wrong[0], place, wrong[1] or _FIX)
    yield (texts["url"], texts["name"], texts["range"], texts["version"], texts["digest"], place)


def _dependency(entry: Any, document: Document) -> Iterator[Row | Problem]:
    place = document.place(entry)
    if not isinstance(entry, dict):
        yield Problem("dependencies", "an entry isn't a mapping", place)
        return
    url, name, version = (entry.get(key) or "" for key in ("repository", "name", "version"))
    if not all(isinstance(text, str) for text in (url, name, version)):
        yield Problem("dependencies", "name, version and repository are texts", place, 'write version: "1.2"')
    elif url.startswith(("@", "alias:")):
        fix = "write the repository's URL"
        yield Problem(f"dependency {printable(name, 80)}", f"{printable(url, 80)} is a name that only `helm repo add` knows", place, fix)
    elif url:
        yield (url, name, "", version, "", place)
