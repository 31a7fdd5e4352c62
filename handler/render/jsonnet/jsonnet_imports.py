"""Which files of a commit a jsonnet program is made of. In the worker; a child lexes.

    round 1      the entrypoint
    round 2      what it imports, looked up as jsonnet does: beside the file that imports it, then in each directory of `search`
    …            until nothing is new; the files of a round are fetched at once

Law: an import names a file of the commit, or the configuration. One that can only lead elsewhere is refused with its line; one that isn't
there is a mistake once it is evaluated. Every place that was looked into is read, so that a commit that puts a file there renders anew.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from handler.model.errors import AnnealError, Problem, SourceRefused
from handler.model.tree import DIRECTORY, MAX_PATH, is_lfs_pointer, printable, resolve_links
from handler.render.file_renderer import at_most, refuse
from handler.render.jsonnet.import_lexer import CODE, CONFIGURATION, LISTS, MAX_IMPORTS, Import, decode_imports
from handler.render.sandbox import Sandbox
from handler.render.tree_files import MAX_TOTAL, TreeFiles

MAX_FILES = 5_000
MAX_TEXT = 4 << 20  # letters of all that imports say, each said once from a directory
MAX_ROUNDS = 200
MAX_SECONDS = 10.0  # of the worker's processor: links and deep directories make each path a long way

_OUT = "name a file of the repository, by its path from this file or from a directory of imports (jpath, lib, vendor)"
_SHOWN = 8  # places that a message names


@dataclass(slots=True)
class JsonnetImports:
    """`search`: directories of the repository, the first one first. `found`: (directory of the importing file, text) -> path.

    `missing`: the same -> what is said once that import is evaluated; `contents`: path as programs see it -> its bytes;
    `lists`: what is imported of a trigger's resources -> where; `texts`: the paths of what is imported as text or bytes.
    """

    files: TreeFiles
    sandbox: Sandbox
    search: Sequence[str]
    found: dict[tuple[str, str], str] = field(default_factory=dict)
    missing: dict[tuple[str, str], Problem] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    _problems: list[Problem] = field(default_factory=list)
    _named: dict[str, str] = field(default_factory=dict)
    _lexed: set[str] = field(default_factory=set)
    _imports: int = 0
    _text: int = 0
    _began: float = field(default_factory=time.thread_time)

    def run(self, entrypoint: str) -> None:
        """Take the entrypoint and all that it imports. Raises SourceRefused: every import that can't be one of the tree's, or a limit."""
        if not self.files.add_file(entrypoint):
            fix = "add it, or name the program: renderer: {type: jsonnet, entrypoint: …}"
            raise SourceRefused.of(printable(entrypoint), f"isn't in commit {self.files.tree.commit.sha[:12]}", fix=fix)
        self._named[entrypoint] = printable(entrypoint, MAX_PATH)
        todo = [entrypoint]
        for _ in range(MAX_ROUNDS):
            self._fetch()
            todo = [path for path in dict.fromkeys(todo) if path not in self._lexed]
            if not todo and self._problems:
                raise SourceRefused(*at_most(self._problems))
            if not todo:
                return
            todo = [path for importer, each in self._lex(todo) for path in self._follow(importer, each)]
        raise SourceRefused.of(printable(entrypoint), f"imports through more than {MAX_ROUNDS} files, one after the other")

    def programs(self, *, texts: bool) -> list[str]:
        """Return the programs, those that are imported as texts, too, or the others."""
        return sorted(path for path in self._lexed if (path in self.texts) is texts)

    def _fetch(self) -> None:
        """Read the files that are new, in one request of the host."""
        new = {path: oid for path, oid in self.files.blobs.items() if path not in self.contents}
        blobs = self.files.tree.blobs(set(new.values())) if new else {}
        self.contents |= {path: blobs[oid] for path, oid in new.items()}
        if len(self.contents) > MAX_FILES:
            raise SourceRefused.of("imports", f"are more than {MAX_FILES:,} files")
        total = sum(map(len, self.contents.values()))
        if total > MAX_TOTAL:
            raise SourceRefused.of("imports", f"have {total:,} bytes together; at most {MAX_TOTAL:,} are read")
        fix = "commit the file itself: git lfs untrack, then git add --renormalize"
        pointers = [path for path in new if is_lfs_pointer(self.contents[path])]
        lfs = "is a pointer of Git LFS, which isn't fetched"
        refuse([Problem(printable(path), lfs, self._named.get(path, ""), fix) for path in pointers])

    def _lex(self, paths: Sequence[str]) -> Iterator[tuple[str, Import]]:
        """Let a child find the imports of programs."""
        self._lexed.update(paths)
        holding = [path for path in paths if CODE.encode() in self.contents[path]]
        if not holding:
            return
        subject = printable(holding[0], MAX_PATH)
        rows = self.sandbox.run("jsonnet imports", {}, [self.contents[path] for path in holding], decode_imports, subject=subject)
        refuse([row for row in rows if isinstance(row, Problem)])
        for row in rows:
            if isinstance(row, tuple) and 0 <= row[0] < len(holding):
                yield from ((holding[row[0]], each) for each in row[1])

    def _follow(self, importer: str, each: Import) -> Iterator[str]:
        """Look an import up; yield the program that it names."""
        self._imports += 1
        if self._imports > MAX_IMPORTS:
            raise SourceRefused.of(printable(importer), f"has one of more than {MAX_IMPORTS:,} imports")
        if each.path == CONFIGURATION:
            return
        base, place = posixpath.dirname(importer), f"{printable(importer, MAX_PATH)}:{each.line}"
        if LISTS.fullmatch(each.path):
            self.lists.setdefault(each.path, place)
            return
        key = base, each.path
        if key not in self.found and key not in self.missing:
            self._text += len(each.path)
            if self._text > MAX_TEXT or time.thread_time() - self._began > MAX_SECONDS:
                seen = "is one of too many imports whose paths are long, or lead far through links"
                raise SourceRefused(Problem(printable(each.path), seen, place))
            try:
                self._look(key, place)
            except AnnealError as error:
                self._problems += [Problem(known.subject, known.message, place, known.fix) for known in error.problems]
        path = self.found.get(key, "")
        if path:
            self._named.setdefault(path, place)
        if path and each.kind == CODE:
            yield path
        elif path:
            self.texts.add(path)

    def _look(self, key: tuple[str, str], place: str) -> None:
        base, text = key
        subject = printable(text) or "import"
        if "://" in text or text.startswith("/") or "\0" in text or len(text) > MAX_PATH:
            why = "is fetched from elsewhere" if "://" in text else "is a path of a machine, not of the repository"
            raise SourceRefused.of(subject, f"{why}; a program gets files of its commit only", fix=_OUT)
        places = [path for directory in (base, *self.search) if (path := below(directory, text))]
        if not places:
            raise SourceRefused.of(subject, "leads out of the repository", fix=_OUT)
        if any(f"/{path}".endswith(f"/{CONFIGURATION}") for path in places):
            fix = f"import '{CONFIGURATION}', or give the file another name"
            raise SourceRefused.of(subject, "isn't the configuration, but is called like it", fix=fix)
        for path in dict.fromkeys(places):
            if self.files.add_file(path):
                self.found[key] = path
                return
        looked = [printable(path) for path in dict.fromkeys(places)]
        more = f" and {len(looked) - _SHOWN} more" if len(looked) > _SHOWN else ""
        sha = self.files.tree.commit.sha[:12]
        seen = f"isn't in commit {sha}" if sha else "isn't there"
        fix = "add it; libraries of jsonnet-bundler are committed: jb install, then git add vendor"
        if self._is_directory(places):
            seen, fix = "is a directory", "name a file in it"
        self.missing[key] = Problem(subject, f"{seen}; looked for at {', '.join(looked[:_SHOWN])}{more}", place, fix)

    def _is_directory(self, places: Sequence[str]) -> bool:
        entries = (resolve_links(self.files.tree, path).entry for path in places)
        return any(entry and entry.mode == DIRECTORY for entry in entries)


def below(directory: str, text: str) -> str | None:
    """Return where a relative path leads from a directory of the repository, empty: to its root; None: out of it."""
    joined = posixpath.normpath(posixpath.join(directory, text))
    return None if joined == ".." or joined.startswith(("../", "/")) else "" if joined == "." else joined


def table(imports: JsonnetImports) -> Mapping[str, object]:
    """Return imports as the evaluation takes them: those that are found, which are programs alone, and mistakes of what is missing."""
    said = [[*key, each.subject, each.message, each.place, each.fix] for key, each in imports.missing.items()]
    return {"found": [[*key, path] for key, path in imports.found.items()], "missing": said, "programs": imports.programs(texts=False)}
