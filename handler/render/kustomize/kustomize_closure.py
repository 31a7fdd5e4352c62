"""Which directories of a commit a kustomization is built of, and what each of its entries leads to. In the worker; a child reads.

    round 1      the kustomization of the target's path
    round 2      those that it refers to, the plugins' configurations and the objects' files that it names
    …            until nothing is new

Law: an entry names a file or directory of the commit, or is refused with its line. Everything below each directory is read, and nothing
else: another commit with the same directories is built the same.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from handler.model.advice import advice
from handler.model.errors import AnnealError, Problem, SourceRefused
from handler.model.outside_inputs import ChartReference
from handler.model.render import Called
from handler.model.tree import DIRECTORY as TREE
from handler.model.tree import MAX_PATH, Tree, TreeEntry, is_lfs_pointer, printable, resolve_links
from handler.render.folders import KUSTOMIZATIONS, inside
from handler.render.frames import decode_problem
from handler.render.kustomize import kustomization as entries
from handler.render.kustomize.kustomization import ChartEntry, Mentions, Reference
from handler.render.kustomize.remotes import is_remote, is_remote_file, shown
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles

BUILT, PLUGINS, OBJECTS = "kustomization", "plugins", "objects"
"""What a file is read as."""
MAX_READ = 5_000
"""Files that are read to know what a kustomization is built of; those that are only built aren't."""
MAX_ENTRIES = 50_000
"""Entries of all kustomizations together: each is looked up in the worker."""
VENDORED = ("resources", "bases", "components")
"""The fields whose URLs `anneal vendor` takes."""

_LONE = "without a git repository around them, call anneal in a directory that holds both"
_ALLOW = "allow it for this target: renderer: {type: kustomize, helmCharts: true}"
_POINTER = "is a pointer of Git LFS, which isn't fetched"
_POINTER_FIX = "commit the file itself: git lfs untrack, then git add --renormalize"


@dataclass(frozen=True, slots=True)
class Task:
    """A file to read. `base`: the directory that its entries start from; `plugins`: its objects configure plugins of that directory."""

    path: str
    role: str
    base: str
    plugins: str | None = None


@dataclass(frozen=True, slots=True)
class ChartUse:
    """A chart that is inflated. `directory`: where kustomize looks for it; `wanted`: what is fetched; None: the tree holds it.

    `base`: the directory of the kustomization that names it.
    """

    directory: str
    place: str
    entry: ChartEntry
    wanted: ChartReference | None = None
    base: str = ""


@dataclass(slots=True)
class Closure:
    """`generated`: kustomizations that git doesn't hold; `remote_allowed`: what would be fetched is passed over.

    `built`: the one that is built; `readings`: by file; `charts`: those inflated; `named`: file -> file:line of the first entry that does;
    `absent`: what entries lead to and the tree doesn't hold, directories without a kustomization among it.
    """

    tree: Tree
    sandbox: Sandbox
    called: Called
    charts_allowed: bool
    files: TreeFiles
    generated: Mapping[str, bytes] = field(default_factory=dict)
    remote_allowed: bool = False
    built: str = ""
    readings: dict[str, Mentions] = field(default_factory=dict)
    charts: list[ChartUse] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    _problems: list[Problem] = field(default_factory=list)
    _remote: list[tuple[Reference, str]] = field(default_factory=list)
    _todo: list[Task] = field(default_factory=list)
    _seen: set[Task] = field(default_factory=set)
    _entries: int = 0

    def run(self, root: str) -> list[Problem]:
        """Read all that the kustomization of a directory refers to; return every entry that is refused. Raises SourceRefused: a limit."""
        self._directory(root, root or "repository", "", None)
        self.built = self._todo[0].path if self._todo else ""
        while self._todo:
            tasks, self._todo = self._todo, []
            for task, reading in self._read(tasks, root or "repository"):
                self.readings[task.path] = reading
                self._entries += len(reading.references)
                if self._entries > MAX_ENTRIES:
                    raise SourceRefused.of(printable(task.path), f"has one of more than {MAX_ENTRIES:,} entries of kustomizations")
                for reference in reading.references:
                    if reference.sort != entries.MARK:
                        self._follow(reference, task)
                for entry in reading.charts:
                    self._chart(entry, task)
        return [*self._problems, *([] if self.remote_allowed else self._remote_problems())]

    def is_built(self, path: str) -> bool:
        """Whether a file is one that kustomize reads: an entry names it, or it is a chart's. What else lies beside it may be for others."""
        charts = (chart.directory for chart in self.charts)
        return path in self.named or path in self.readings or any(inside(path, each) for each in charts)

    def pointers(self) -> list[Problem]:
        """Return one problem for each entry that names a file whose content is in Git LFS."""
        found = sorted(self.files.pointers & self.named.keys())
        return [Problem(printable(path), _POINTER, self.named[path], _POINTER_FIX) for path in found]

    def _read(self, tasks: Sequence[Task], subject: str) -> Iterator[tuple[Task, Mentions]]:
        """Let a child read files, and yield what each names."""
        ids = {task.path: entry.oid for task in tasks if task.path not in self.generated and (entry := self._entry(task.path))}
        blobs = self.tree.blobs(ids.values(), ahead=self.files.blobs.values())
        contents = {**{path: blobs[oid] for path, oid in ids.items()}, **self.generated}
        tasks = [task for task in tasks if not self._is_pointer(task, contents[task.path])]
        options = {
            "places": [printable(task.path, MAX_PATH) for task in tasks],
            "roles": [task.role for task in tasks],
            "root": next((number for number, task in enumerate(tasks) if task.role == BUILT and task.path == self.built), -1),
        }
        parts = [contents[task.path] for task in tasks]
        rows = self.sandbox.run("kustomizations", options, parts, decode_row, subject=printable(subject)) if parts else []
        self._problems += [row for row in rows if isinstance(row, Problem)]
        return ((tasks[row[0]], row[1]) for row in rows if isinstance(row, tuple) and 0 <= row[0] < len(tasks))

    def _is_pointer(self, task: Task, data: bytes) -> bool:
        """Whether a file is Git LFS's; a kustomization is refused at once, since no entry names it."""
        found = is_lfs_pointer(data)
        if found and task.role == BUILT:
            self._refuse(task.path, _POINTER, "", _POINTER_FIX)
        return found

    def _entry(self, path: str) -> TreeEntry | None:
        resolved = resolve_links(self.tree, path)
        self.files.reads.update(resolved.looked)
        return resolved.entry

    def _directory(self, path: str, subject: str, place: str, plugins: str | None) -> None:
        """Take a directory with everything below it, and read its kustomization."""
        found = [name for name in KUSTOMIZATIONS if self._is_file(posixpath.join(path, name))]
        if len(found) == 1:
            self.files.add(path)
            self._task(Task(posixpath.join(path, found[0]), BUILT, path, plugins))
        elif found:
            self._refuse(subject, f"holds {' and '.join(found)}; kustomize reads one of them", place, "remove the others")
        else:
            self.absent.add(path)
            self._refuse(subject, "holds no kustomization.yaml", place, "add one that lists what it is made of")

    def _is_file(self, path: str) -> bool:
        entry = None if path in self.generated else self._entry(path)
        return path in self.generated or (entry is not None and entry.mode != TREE)

    def _task(self, task: Task) -> None:
        if task not in self._seen:
            self._seen.add(task)
            self._todo.append(task)
        if len(self._seen) > MAX_READ:
            raise SourceRefused.of(printable(task.path), f"is one of more than {MAX_READ:,} files that kustomizations name")

    def _refuse(self, subject: str, message: str, place: str, fix: str = "") -> None:
        self._problems.append(Problem(printable(shown(subject)), message, place, fix))

    def _follow(self, reference: Reference, task: Task) -> None:
        """Go where an entry leads; refuse what leads to nothing of the tree."""
        text, place = reference.text, _place(task, reference.line)
        target = below(task.base, text)
        if _is_remote(reference):
            self._remote.append((reference, place))
        elif not text:
            self._refuse(reference.field, "has an entry that is empty", place, "remove it")
        elif text.startswith("/") or target is None:
            why = "leads out of the repository" if target is None else "is a path of a machine, not of the repository"
            lone = target is None and not self.called.in_git
            fix = _LONE if lone else "name a file or directory of the repository, by its path from here"
            self._refuse(text, why, place, fix)
        else:
            try:
                entry = self._entry(target)
            except AnnealError as error:
                self._problems += [Problem(each.subject, each.message, place, each.fix) for each in error.problems]
            else:
                self._arrive(reference, task, target, entry)

    def _arrive(self, reference: Reference, task: Task, target: str, entry: TreeEntry | None) -> None:
        """Take what an entry leads to as what it is there for."""
        sort, text, place = reference.sort, reference.text, _place(task, reference.line)
        if entry is None:
            self.absent.add(target)
            fetched = any(chart.repo for chart in self.readings[task.path].charts)
            if sort != entries.VALUES or not fetched:  # a chart from elsewhere may hold them
                sha = self.tree.commit.sha[:12]
                self._refuse(text, f"isn't in commit {sha}" if sha else "isn't there", place, "add it, or remove this entry")
        elif entry.mode == TREE and sort in (entries.FILE, entries.PATCH, entries.VALUES):
            self._refuse(text, f"is a directory; {reference.field} takes files", place)
        elif entry.mode == TREE:
            self._directory(target, text, place, task.base if sort == entries.PLUGIN else task.plugins)
        elif sort == entries.DIRECTORY:
            self._refuse(text, "is a file; a component is a directory with a kustomization", place)
        elif not inside(target, task.base):
            fix = "add a kustomization.yaml that lists it to its own directory, and name that directory here"
            self._refuse(text, "lies outside of this directory; kustomize takes files in or below it only", place, fix)
        else:
            self.named.setdefault(target, place)
            self._file(sort, target, task)

    def _file(self, sort: str, target: str, task: Task) -> None:
        if sort == entries.PLUGIN:
            self._task(Task(target, PLUGINS, task.base))
        elif sort == entries.RESOURCE and task.plugins is not None:
            self._task(Task(target, PLUGINS, task.plugins))
        elif sort == entries.RESOURCE:
            self._task(Task(target, OBJECTS, task.base))

    def _remote_problems(self) -> Iterator[Problem]:
        """Yield each entry that would be fetched; one command vendors all that can be."""
        folders = [posixpath.dirname(f"/{place}") for reference, place in self._remote if reference.field in VENDORED]
        common = posixpath.commonpath(folders)[1:] if folders else ""
        vendor = advice("in a checkout, commit what this writes: anneal vendor {path}", self.called.place(common))
        for reference, place in self._remote:
            fix = vendor if reference.field in VENDORED else "download it beside this file, commit it, and name that"
            yield Problem(
                printable(shown(reference.text)), "isn't in git; kustomize would fetch it, and nothing is fetched here", place, fix
            )

    def _chart(self, entry: ChartEntry, task: Task) -> None:
        """Find a chart in the tree, or note that it is to be fetched."""
        place, subject = _place(task, entry.line), f"chart {entry.name or '?'}"
        versioned = f"{entry.name}-{entry.version}" if entry.version and entry.repo else ""
        home = below(task.base, posixpath.join(entry.home, versioned))
        directory = below(home, entry.name) if home is not None else None
        if not self.charts_allowed:
            self._refuse(subject, "would be inflated by helm, which this target doesn't allow", place, _ALLOW)
        elif not entry.name or directory is None or entry.name.startswith("/") or entry.home.startswith("/"):
            self._refuse(subject, "has no name, or leads out of the repository", place, "name a chart below chartHome")
        elif (found := self._entry(directory)) and found.mode == TREE:
            self.files.add(directory)
            self.charts.append(ChartUse(directory, place, entry))
        elif not entry.repo:
            self.absent.add(directory)
            where = printable(posixpath.dirname(directory) or ".")
            self._refuse(subject, f"isn't in {where}/", place, "commit it there, or write its repo and version")
        else:
            self._elsewhere(ChartUse(directory, place, entry, base=task.base))

    def _elsewhere(self, chart: ChartUse) -> None:
        """Note a chart that is to be fetched."""
        try:
            self.charts.append(replace(chart, wanted=wanted_chart(chart.entry, chart.place)))
        except SourceRefused as error:
            self._problems += error.problems


def _place(task: Task, line: int) -> str:
    return f"{printable(task.path, MAX_PATH)}:{line}"


def _is_remote(reference: Reference) -> bool:
    """Whether kustomize would fetch an entry; what can't be a directory is never cloned."""
    if reference.sort in (entries.RESOURCE, entries.DIRECTORY, entries.PLUGIN):
        return is_remote(reference.text)
    return "://" in reference.text or is_remote_file(reference.text)


def wanted_chart(entry: ChartEntry, place: str) -> ChartReference:
    """Return what kustomize would pull. Raises SourceRefused: it isn't said which version."""
    if not entry.version:
        seen = "comes from elsewhere and has no version"
        raise SourceRefused(Problem(f"chart {printable(entry.name)}", seen, place, "write version: …"))
    return ChartReference.of(entry.repo, entry.name, entry.version, place)


def below(folder: str, text: str) -> str | None:
    """Return where a relative path leads from a directory of the repository, as kustomize joins them; None: out of it."""
    joined = posixpath.normpath(posixpath.join(folder, text.lstrip("/")))
    return None if joined == ".." or joined.startswith("../") else "" if joined == "." else joined


Row = tuple[int, Mentions] | Problem


def decode_row(frame: bytes) -> Row:
    """Read what the child says of a file, by its number, or a mistake. Raises ValueError: it is neither."""
    if frame[:1] == b"K":
        number, _, rest = frame[1:].partition(b" ")
        try:
            return int(number), entries.decode_mentions(rest)
        except (KeyError, TypeError):
            raise ValueError("no reading") from None
    return decode_problem(frame)
