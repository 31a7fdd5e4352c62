"""Whether the anneal.yaml of the working directory counts: once a person said so, at a terminal or by writing it with `anneal init`.

That is remembered in the user's state directory, by the file's path and a digest of what it reaches (`handler.config.reach`): an edit of
anything else doesn't ask again. Law: before the answer files are parsed, and nothing is sent, run or resolved.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import click

from handler.cli.output import Output
from handler.config import load
from handler.config.reach import Reach, reach
from handler.config.settings import Settings
from handler.model.errors import ConfigInvalid
from handler.model.quotation import escaped
from handler.source.checkout import root_around

_LONGEST, _HEAD = 200, 120  # characters of one name that are shown, the end of a path among them


Reads = Callable[..., Settings]
"""Reads a configuration of a path, and what it includes by a ReadInclude. Raises ConfigInvalid."""


def counted(path: Path, read: Reads, environ: Mapping[str, str], output: Output, naming: Callable[[str], str]) -> tuple[Path, Settings]:
    """Return the configuration that counts here: this one, or without a terminal the machine's own.

    `naming`: returns the command that runs now with its configuration named. Raises ConfigInvalid: the file has mistakes, or there is no
    terminal to ask at; click.Abort: the answer is no.
    """
    settings, found = _judged(path, read)
    place = _place(path, environ)
    if place and _remembered(place) == found.digest:
        return path, settings
    if output.interactive:
        with output.still():
            for line in _question(path, found):
                output.line(line, whole=True)
            if not output.confirm("Use it, now and whenever it names just this?"):
                raise click.Abort
        if not _remember(place, found.digest):
            output.note("this can't be remembered: there is no state directory of yours that can be written (XDG_STATE_HOME)")
        return path, settings
    said = f"{path} lies in the working directory, and you haven't said yet that it counts"
    if load.SYSTEM.is_file():
        output.note(f"{said}; {load.SYSTEM} does")
        return load.SYSTEM, read(load.SYSTEM)
    fix = f"if you trust it, run the same at a terminal, which asks once, or name it:\n{naming(path.name)}"
    raise ConfigInvalid.of("configuration", said, fix=fix)


def trusts(path: Path, read: Reads, environ: Mapping[str, str]) -> bool:
    """Whether a person said that a configuration counts, with what it reaches now. Raises ConfigInvalid: it has mistakes."""
    place = _place(path, environ)
    known = _remembered(place) if place else ""
    return bool(known) and known == _judged(path, read)[1].digest


def remember(path: Path, read: Reads, environ: Mapping[str, str]) -> bool:
    """Remember that a configuration counts, which a person has just made; return whether that could be written."""
    return _remember(_place(path, environ), _judged(path, read)[1].digest)


def _judged(path: Path, read: Reads) -> tuple[Settings, Reach]:
    included: list[str] = []

    def noted(glob: str, file: str) -> Sequence[tuple[str, str]]:
        found = load.matches(glob, file)
        included.extend(name for name, _ in found)
        return found

    settings, here = read(path, noted), path.absolute().parent
    return settings, reach(settings, here, root_around(here) or here, included)


def _question(path: Path, found: Reach) -> list[str]:
    named = [(f"  {group}", *(f"    {_one(each)}" for each in found.named[group])) for group in found.named]
    return [f"{_one(str(path))} lies in the working directory. It names:", *chain.from_iterable(named)]


def _one(text: str) -> str:
    """Return foreign text as one line that can't be taken for another, cut in its middle."""
    plain = re.sub("  +", lambda blanks: "\\x20" * len(blanks[0]), escaped(text))
    cut = f"{plain[:_HEAD]} … {len(plain) - _LONGEST:,} characters … {plain[_HEAD - _LONGEST :]}"
    return plain if len(plain) <= _LONGEST else cut


# --- what is remembered
def _place(path: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the file that remembers a configuration; None: this user has no directory for it."""
    base, home = (Path(environ.get(name, "")) for name in ("XDG_STATE_HOME", "HOME"))
    if not base.is_absolute():
        if not (home.is_absolute() and home.is_dir()):
            return None
        base = home / ".local" / "state"
    real = path.absolute().parent.resolve() / path.name
    return base / "anneal" / "trusted" / hashlib.sha256(os.fsencode(real)).hexdigest()


def _remembered(place: Path) -> str:
    """Return the digest that is remembered; empty: none is, or another user could have written it."""
    try:
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            found, above = os.fstat(stream.fileno()), place.parent.lstat()
            ours = all(each.st_uid == os.geteuid() and not each.st_mode & 0o077 for each in (found, above))
            plain = stat.S_ISREG(found.st_mode) and stat.S_ISDIR(above.st_mode)
            return stream.read(64).decode("ascii", "replace") if ours and plain else ""
    except OSError:
        return ""


def _remember(place: Path | None, digest: str) -> bool:
    """Write a digest whole, in a directory of the user's own."""
    if place is None:
        return False
    try:
        for each in (place.parent.parent, place.parent):
            each.mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False) as stream:  # made with mode 0600, through no link
            stream.write(digest)
        Path(stream.name).replace(place)
    except OSError:
        return False
    return _remembered(place) == digest
