"""`-f`: manifests that no configuration names: files, directories, and standard input (`-`), as the settings and source of one target."""

from __future__ import annotations

import functools
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from click.core import ParameterSource

from handler.model.advice import advice, together
from handler.model.names import STATE_NAMESPACE

if TYPE_CHECKING:
    from handler.cli.session import Session
    from handler.config.settings import Settings
    from handler.engine.planner.desired import CommitSource
    from handler.model.errors import Problem

STDIN = "-"
PIPED = "standard input"  # what places in messages call it
_FLAGS = {"namespaces": "namespaces", "clusterScoped": "cluster_scoped", "adopt": "adopt", "recreate.kinds": "recreate"}
"""A setting that may lack a value -> the flag that gives it."""
SAME = "the same command"  # what goes on with a run that no configuration knows
GLOBS = ("**/*.yaml", "**/*.yml", "**/*.json")


@dataclass(frozen=True, slots=True)
class FilenameFlags:
    """The flags of `-f`."""

    filenames: tuple[str, ...] = ()
    name: str = ""
    namespaces: tuple[str, ...] = ("default",)  # a record needs none
    cluster_scoped: tuple[str, ...] = ("Namespace",)
    adopt: tuple[str, ...] = ()
    recreate: tuple[str, ...] = ()
    validate: str = "server"
    state_namespace: str = STATE_NAMESPACE

    @property
    def piped(self) -> bool:
        """Whether standard input holds manifests."""
        return STDIN in self.filenames

    @property
    def directory(self) -> Path | None:
        """The directory, where nothing else is named."""
        only = Path(self.filenames[0]) if len(self.filenames) == 1 else None
        return only if only and only.is_dir() else None

    @property
    def kustomized(self) -> bool:
        """Whether the directory holds a kustomization and no chart: helm is the user's own here, as by `kustomize build --enable-helm`."""
        from handler.render.folders import CHART, KUSTOMIZATIONS  # noqa: PLC0415 - `--help` stays fast

        found = self.directory
        return found is not None and not (found / CHART).is_file() and any((found / name).is_file() for name in KUSTOMIZATIONS)

    @property
    def renderer(self) -> dict[str, object]:
        """What renders it, as a configuration says it."""
        from handler.render.auto_renderer import MAIN  # noqa: PLC0415 - `--help` stays fast

        if self.kustomized:
            return {"type": "kustomize", "helmCharts": True}
        found = self.directory
        return {"type": "jsonnet"} if found and (found / MAIN).is_file() else {"include": self.include()}

    @property
    def checkout(self) -> tuple[Path, str] | None:
        """The checkout's root and the directory's path there, where it holds what may build on other directories of it."""
        from handler.cli.checkout_parts import checkout_of  # noqa: PLC0415 - `--help` stays fast

        return checkout_of(self.directory) if self.directory else None

    @property
    def _wanted(self) -> list[Path]:
        return [Path(os.path.abspath(each)) for each in self.filenames if each != STDIN]  # noqa: PTH100 - links are followed later

    @property
    def base(self) -> str:
        """The directory that paths of several files start from: empty, the present one; else their common one."""
        if all(Path.cwd() in each.parents for each in self._wanted):
            return ""
        return os.path.commonpath([each.parent for each in self._wanted])

    def paths(self) -> dict[str, Path]:
        """Return where each is found by its path in the commit that they make."""
        base = Path(self.base or Path.cwd())
        return {each.relative_to(base).as_posix(): each for each in self._wanted}

    def include(self) -> list[str]:
        """Return the globs that select what is named, whatever its name ends in."""
        if self.directory:
            return list(GLOBS)
        found = [PIPED] if self.piped else []
        for name, path in self.paths().items():
            plain = "".join(f"\\{char}" if char in "*?[\\" else char for char in name)
            found += [f"{plain}/{glob}" for glob in GLOBS] if path.is_dir() else [plain]
        return found

    def settings(self) -> Settings:
        """Return the one target's settings; its first namespace is for objects that name none. Raises ConfigInvalid for wrong names."""
        from handler.config.git_settings import Repository, directory_url  # noqa: PLC0415 - `--help` stays fast
        from handler.config.load import API_VERSION, parse  # noqa: PLC0415 - the same

        lone = "*" in self.namespaces
        target = {
            "name": self.name,
            "repository": {"url": "https://local.invalid/directory"},
            **({"path": self.checkout[1]} if self.checkout else {}),
            "renderer": self.renderer,
            "namespaces": "*" if lone else list(self.namespaces),
            "clusterScoped": list(self.cluster_scoped),
            "validate": self.validate,
            **({} if lone else {"namespace": self.namespaces[0]}),
            **({"adopt": list(self.adopt)} if self.adopt else {}),
            **({"recreate": {"kinds": list(self.recreate)}} if self.recreate else {}),
        }
        header = {"apiVersion": API_VERSION, "kind": "Config", "stateNamespace": self.state_namespace}
        settings = parse(json.dumps({**header, "targets": [target]}), "command line")
        local = Repository(url=directory_url(self.name))
        return replace(settings, targets=tuple(replace(made, repository=local) for made in settings.targets))


_NAMES = tuple(each.name for each in fields(FilenameFlags))


def from_files(*, record: bool = False, number: str = "") -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let the work of a command that is declared with `files_options` be of the target that those make.

    `record`: it reads the target's record only: --name is enough. `number`: the parameter that `-n NUMBER` sets without the rest of `-f`.
    """

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def opened(session: Session, *, target: str | None, **given: Any) -> int:
            flags = {name: given.pop(name) for name in _NAMES}
            if number and len(flags["namespaces"]) == 1 and sum(map(bool, flags.values())) == 1:
                given[number] = _number(flags["namespaces"][0])
                flags["namespaces"] = ()
            files = _files(target, given.get("commit"), flags, record=record)
            if files:
                target = _open(session, files, record=record)
            return function(session, target=target, **given)

        return opened

    return decorate


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise click.UsageError(f"-n {text}: expected a number of 1 or more; a namespace goes with --name")
    return int(text)


def _files(target: str | None, commit: str | None, flags: Mapping[str, Any], *, record: bool) -> FilenameFlags | None:
    """Return the flags of `-f`, None without it. Raises click.UsageError for what doesn't go together."""
    written = [name for name in _NAMES[1:] if flags[name]]
    if not flags["filenames"] and not (record and flags["name"]):
        if written:
            raise click.UsageError(f"--{written[0].rstrip('s').replace('_', '-')} goes with -f DIR, -f FILE or -f -")
        return None
    if target or commit:
        raise click.UsageError(f"-f names the manifests; {'TARGET' if target else '--commit'} doesn't go with it")
    if not flags["name"] or not (record or flags["namespaces"]):
        example = again(name=flags["name"] or "shop", namespaces=flags["namespaces"] or ("shop",))
        raise click.UsageError(f"-f needs --name NAME and -n NAMESPACE: {example}")
    return FilenameFlags(**{name: value for name, value in flags.items() if value})


def _open(session: Session, files: FilenameFlags, *, record: bool) -> str:
    settings = files.settings()
    source = _later(session, files) if record else read(session, files)
    session.sandbox.weak = True  # files of this machine, as kustomize build and helm template would take them
    session.from_files, session.output.way_out, session.again = True, _way_out, SAME
    session.output.piped = files.piped
    session.path = Path("command line")  # no file configures it
    return session.use(settings, source).name


def read(session: Session, files: FilenameFlags) -> CommitSource:
    """Read what is named. Raises SourceRefused, click.UsageError."""
    from handler.cli.checkout_parts import built_of  # noqa: PLC0415 - `--help` stays fast
    from handler.cli.local_source import CheckoutParts, Directory, Files  # noqa: PLC0415 - the same

    directory, checkout = files.directory, files.checkout
    if directory is None:
        return Files(contents(files), files.base)
    source = CheckoutParts(*checkout, built_of(*checkout, session.sandbox)) if checkout else Directory(directory)
    if source.differs:
        session.output.note(f"{directory} differs from commit {source.committed.sha[:12]}; what lies there counts")
    return source


def contents(files: FilenameFlags) -> dict[str, Path | bytes]:
    """Return where what is named lies, by its path in the commit that it makes, or its content where that comes by a pipe.

    Raises SourceRefused, click.UsageError.
    """
    found: dict[str, Path | bytes] = {PIPED: _stdin()} if files.piped else {}
    return found | {name: _stream(path) if _is_stream(path) else path for name, path in files.paths().items()}


def _stdin() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError(f"-f -: nothing is piped into it; write: kustomize build DIR | {again().removeprefix('… | ')}")
    return _bounded(sys.stdin.buffer, PIPED)


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _stream(path: Path) -> bytes:
    with path.open("rb") as stream:
        return _bounded(stream, str(path))


def _bounded(stream: BinaryIO, subject: str) -> bytes:
    """Return what a pipe brings, up to the size of one file; nothing at all is refused: the command before the pipe has failed then."""
    from handler.model.errors import SourceRefused  # noqa: PLC0415 - `--help` stays fast
    from handler.render.document import MAX_BYTES  # noqa: PLC0415 - the same

    content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise SourceRefused.of(subject, f"is larger than {MAX_BYTES:,} bytes", fix="split it into files, and pass their directory")
    if not content.strip():
        raise SourceRefused.of(subject, "is empty, so nothing was changed", fix="see what the command before the pipe says")
    return content


def _later(session: Session, files: FilenameFlags) -> CommitSource:
    """Return a source that reads when it is first asked: a command that reads a record may need no files."""
    from handler.cli.local_source import Rereading  # noqa: PLC0415 - `--help` stays fast
    from handler.model.errors import RefNotFound  # noqa: PLC0415 - the same

    @functools.cache
    def once() -> CommitSource:
        if not files.filenames:
            raise RefNotFound.of(f"target {files.name}", "no -f says what it declares now")
        return read(session, files)

    return Rereading(once)


def refuse_unasked(session: Session, *, yes: bool) -> None:
    """Raise click.UsageError, with the command, where manifests are piped, no terminal is there to ask on, and `-y` is missing."""
    if session.output.piped and not (yes or session.output.interactive):
        raise click.UsageError(f"-f -: there is no terminal to ask on, so it needs -y: {again(yes=True)}")


def again(**changed: object) -> str:
    """Return the command that runs now as one would type it, with these parameters changed."""
    ctx = click.get_current_context()
    return _typed(ctx, ctx.command, changed)


def _typed(ctx: click.Context, command: click.Command, changed: Mapping[str, object]) -> str:
    words, common = list[str](), ctx.obj or {}
    for param in sorted(command.params, key=lambda param: param.name not in _NAMES):
        name = param.name or ""
        typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        value = changed[name] if name in changed else ctx.params.get(name) if typed else common.get(name)
        for each in value if isinstance(value, tuple | list) else [value] if value else []:
            flag = [param.opts[0]] if isinstance(param, click.Option) else []
            is_bare = isinstance(param, click.Option) and (param.is_flag or param.count)
            words += flag if is_bare else [*flag, str(each)]
    return advice("… | anneal {}{words}" if STDIN in ctx.params.get("filenames", ()) else "anneal {}{words}", command.name, words)


def approving(session: Session, *, prunes: bool) -> Callable[[str], str] | None:
    """Return what makes the `apply` that approves what is held of files; None of a target, which is approved by name.

    `prunes`: whether this command deletes.
    """
    ctx = click.get_current_context()

    def approve(held: str) -> str:
        assert ctx.parent  # noqa: S101 - a command of the group
        assert isinstance(ctx.parent.command, click.Group)  # noqa: S101 - the same
        apply = ctx.parent.command.get_command(ctx, "apply") or ctx.command
        return _typed(ctx, apply, {"approve": held, "with_prune": prunes})

    return approve if session.from_files else None


def _way_out(problem: Problem) -> str:
    """Return the way out of a problem: where settings lack something, the command that has it."""
    from handler.plan.missing_settings import MissingSetting  # noqa: PLC0415 - `--help` stays fast

    if not isinstance(problem, MissingSetting) or not problem.settings:
        return problem.fix
    if any(field not in _FLAGS for field, _ in problem.settings):  # `prune.allowEmpty`: an empty pipe is a failed command
        return "name files that declare something; without any, delete what there is with kubectl"
    corrects = problem.first if "namespaces" in dict(problem.settings) else ""
    allowed = together("; or, if it is meant: ", (corrects, again(**{_FLAGS[field]: values for field, values in problem.settings})))
    return together("\n", [allowed, *problem.more])
