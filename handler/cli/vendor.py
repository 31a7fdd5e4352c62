"""`anneal vendor`: what kustomizations of a checkout take from elsewhere becomes a part of it, below `vendor/`.

    find      entries of resources, bases and components that kustomize would fetch      kustomization reader, in a child
    fetch     a repository's directory with all that it builds on, or one file           remote_bases
    write     below DIRECTORY/vendor, by host, repository, ref and path
    rewrite   the entry, in its own line; a comment keeps the URL and the commit
    again     until what was written names nothing remote either

Law: nothing is written outside of DIRECTORY/vendor but the lines of such entries, and nothing through a symbolic link.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from handler.cli import reports
from handler.cli.checkout_kustomizations import kustomizations
from handler.cli.remote_bases import Fetched, RemoteBases
from handler.cli.session import Session
from handler.model.advice import advice
from handler.model.errors import AnnealError, Problem, SourceRefused
from handler.model.tree import printable
from handler.render.kustomize.kustomize_closure import VENDORED
from handler.render.kustomize.remotes import is_remote, shown
from handler.render.sandbox import Sandbox

VENDOR = "vendor"
ROUNDS = 10
"""How often remote bases may name remote bases."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry that names something remote. `file`: its kustomization; `text`: as it is written there."""

    file: Path
    line: int
    text: str

    @property
    def place(self) -> str:
        """Its file:line."""
        return f"{printable(str(self.file))}:{self.line}"


@dataclass(frozen=True, slots=True)
class Vendored:
    """What became of one entry. `origin`: the commit, or the sha256 of a file."""

    place: str
    url: str
    directory: str
    origin: str


def vendor(session: Session, directory: Path, *, with_lock: bool = False) -> int:
    """Vendor all that the kustomizations below a directory name, or lock the charts that are needed there. Raises AnnealError."""
    if not directory.is_dir():
        raise SourceRefused.of(printable(str(directory)), "is not a directory")
    if with_lock:
        return _locked(session, directory)
    done: list[Vendored] = []
    problems: list[Problem] = []
    failed: set[str] = set()
    with session.output.working("fetching remote bases"):
        bases = RemoteBases(session)
        for _ in range(ROUNDS):
            found = [each for each in entries(directory, session.sandbox) if each.place not in failed]
            if not found:
                break
            for entry in found:
                try:
                    done.append(_vendored(entry, directory, bases))
                except AnnealError as error:
                    failed.add(entry.place)
                    problems += [replace(each, place=entry.place) for each in error.problems]
        else:
            problems.append(Problem(str(directory), f"its remote bases name others for more than {ROUNDS} rounds"))
    return _reported(session, directory, done, problems)


def _locked(session: Session, directory: Path) -> int:
    from handler.cli.chart_lock import lock_charts  # noqa: PLC0415 - fetching bases needs none of it

    with session.output.working("fetching charts"):
        lines = lock_charts(session, directory)
    if session.output.as_json:
        session.output.document({"locked": lines})
    for line in lines or [f"no chart below {directory} needs one from elsewhere"]:
        session.output.line(line)
    return reports.DONE_CODE


def _reported(session: Session, directory: Path, done: list[Vendored], problems: list[Problem]) -> int:
    if session.output.as_json:
        session.output.document({"vendored": done, "problems": reports.mended(session.output, problems)})
    for each in done:
        session.output.line(f"{each.place}: {each.url} ({each.origin}) is now {each.directory}")
    reports.problems(session.output, problems)
    if done:
        session.output.line(advice("commit it: git add {path} && git commit -m 'Vendor remote bases'", directory), whole=True)
    elif not problems:
        session.output.line(f"no kustomization below {directory} names a remote base")
    return reports.FAILED if problems else reports.DONE_CODE


def entries(directory: Path, sandbox: Sandbox) -> list[Entry]:
    """Return what kustomizations below a directory name and kustomize would fetch."""
    return [
        Entry(file, each.line, each.text)
        for file, mentions in kustomizations(directory, sandbox)
        for each in mentions.references
        if each.field in VENDORED and is_remote(each.text)
    ]


def _vendored(entry: Entry, directory: Path, bases: RemoteBases) -> Vendored:
    """Fetch what an entry names, write it, and rewrite the entry."""
    fetched = bases.fetch(entry.text)
    top = directory / VENDOR
    for path, data in _written(fetched):
        _write(top, path, data)
    there = top / fetched.place
    relative = posixpath.relpath(there.as_posix(), entry.file.parent.as_posix())
    rewrite(entry, relative, f"{shown(entry.text)} is {fetched.origin}")
    return Vendored(entry.place, shown(entry.text), str(there), fetched.origin)


def _written(fetched: Fetched) -> Iterator[tuple[str, bytes]]:
    for path, data in fetched.files.items():
        yield posixpath.normpath(posixpath.join(fetched.root, path)), data


def _write(top: Path, path: str, data: bytes) -> None:
    """Write a file below a directory. Raises SourceRefused: something on the way is a symbolic link."""
    target = top
    for part in ("", *path.split("/")):
        target = target / part if part else target
        if part == ".." or target.is_symlink():
            raise SourceRefused.of(printable(str(target)), "is a symbolic link, or leads elsewhere; nothing is written through it")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def rewrite(entry: Entry, path: str, comment: str) -> None:
    """Let an entry name a path, in its own line; all else of the file stays. Raises SourceRefused: the line doesn't hold its text."""
    lines = entry.file.read_bytes().decode().splitlines(keepends=True)
    line = lines[entry.line - 1] if 0 < entry.line <= len(lines) else ""
    if entry.text not in line:
        raise SourceRefused.of(shown(entry.text), "isn't written in one line", place=entry.place, fix=f"write: - {path}")
    body = line.rstrip("\r\n")
    commented = body.replace(entry.text, path, 1) + ("" if body.lstrip().startswith('"') else f" # {printable(comment)}")
    lines[entry.line - 1] = commented + line[len(body) :]
    entry.file.write_bytes("".join(lines).encode())
