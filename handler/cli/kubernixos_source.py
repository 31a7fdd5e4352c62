"""What `anneal kubernixos` deploys: the closure of MODULES and PACKAGES, in the checkout around the present directory; or a target.

Without a configuration the target may touch every namespace and kind, as upstream's kubectl; it takes over what the original deployed, and
deletes nothing but by the word `prune`, which a person answers: so there no kind must be named first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from handler.cli.filenames import SAME
from handler.cli.kubernixos_flags import NAMESPACE
from handler.cli.local_source import Unignored
from handler.cli.session import Session
from handler.config.git_settings import Repository, directory_url
from handler.config.renderer_settings import NIX, RendererSettings
from handler.config.settings import Prune, Settings, Target
from handler.config.settings_shape import Json
from handler.config.value_formats import FORMS
from handler.model.advice import advice, together
from handler.model.errors import ConfigInvalid, Problem
from handler.model.names import KUBERNIXOS
from handler.source.checkout import root_around

_SETTING = re.compile(r"^renderer\.(modules|packages)(?=:)")
_EXAMPLE = "export MODULES='[ ./module.nix ]' PACKAGES='import <nixpkgs> { }'"


def closure(session: Session, name: str, target: str | None, *, show_trace: bool) -> Target:
    """Return what is deployed, and make it a target of the session. Raises AnnealError, click.UsageError."""
    return _configured(session, target, show_trace=show_trace) if target else _local(session, name, show_trace=show_trace)


def _configured(session: Session, name: str, *, show_trace: bool) -> Target:
    found = session.target(name)
    if found.compat != KUBERNIXOS:
        raise click.UsageError(f"--target {name}: its objects carry no label of Kubernixos; write `compat: kubernixos` on it")
    if show_trace and found.renderer.type == NIX:
        return in_place(session, replace(found, renderer=replace(found.renderer, show_trace=True)))
    return found


def in_place(session: Session, target: Target) -> Target:
    """Let a target stand in the place of the session's one of its name; the others stay, for what siblings declare isn't deleted."""
    targets = tuple(target if each.name == target.name else each for each in session.settings.targets)
    session.settings = replace(session.settings, targets=targets)
    return session.target(target.name)


def _local(session: Session, name: str, *, show_trace: bool) -> Target:
    if wrong := FORMS["name"].complaint(name):
        raise click.UsageError(f"--name {name!r}: {wrong[0]}")
    modules = _expression(session.environ, "MODULES")
    if not modules:
        raise ConfigInvalid.of("MODULES", "must be set in environment", fix=_EXAMPLE)
    found = LocalClosure.around(Path.cwd().resolve())
    made = Target(
        name=name,
        repository=Repository(url=directory_url(name)),
        namespaces=("*",),
        path=found.path,
        namespace=NAMESPACE,
        cluster_scoped=("*",),
        renderer=renderer(found, modules, session.environ, show_trace=show_trace),
        adopt=("kubernixos",),
        compat="kubernixos",
        prune=Prune(kinds=("*",)),
    )
    session.output.way_out, session.again = _way_out, SAME
    session.sandbox.weak = True  # files of this machine, as `nix eval` would take them
    return session.use(Settings((made,), state_namespace=NAMESPACE), Unignored(found.root))


def _way_out(problem: Problem) -> str:
    """Return the way out of a problem: no configuration can have a setting that is lacking here, but a target's can."""
    from handler.plan.missing_settings import MissingSetting, block  # noqa: PLC0415 - only a mistake waits for it

    if "nixPath" in problem.fix:
        return "keep it in the repository, or name where it lies: export NIX_PATH=nixpkgs=/opt/nixpkgs, or a path in PACKAGES or MODULES"
    if not isinstance(problem, MissingSetting) or not problem.settings:
        return problem.fix
    wanted = together("; ", (block(problem.target, dict(problem.settings)), *problem.more))
    return advice("write a target with `compat: kubernixos` in anneal.yaml, name it by --target, and there: {text}", wanted)


def placed(problem: Problem) -> Problem:
    """Return a problem of a local closure whose place is a variable where it would be a setting of a target."""
    return replace(problem, place=_SETTING.sub(lambda found: found[1].upper(), problem.place))


def _expression(environ: Mapping[str, str], name: str) -> str:
    """Return a Nix expression of the environment, by the rules of one in a configuration. Raises ConfigInvalid."""
    text = environ.get(name, "")
    if text and (wrong := FORMS["nix"].complaint(text)):
        raise ConfigInvalid.of(name, wrong[0], fix=wrong[1])
    return text


def renderer(found: LocalClosure, modules: str, environ: Mapping[str, str], *, show_trace: bool) -> RendererSettings:
    """Return how the closure is rendered: with the directories of NIX_PATH, and those outside that MODULES and PACKAGES name.

    Raises ConfigInvalid: PACKAGES is no expression.
    """
    packages, directories = _expression(environ, "PACKAGES"), dict(_entries(environ.get("NIX_PATH", "")))
    outside = sorted({path for text in (modules, packages) for path in found.outside(text)} - {*directories.values()})
    directories |= {f"outside-{number}": path for number, path in enumerate(outside)}
    return RendererSettings(
        type=NIX,
        modules=found.relative(modules),
        packages=found.relative(packages),
        nix_path=Json(json.dumps(directories)),
        show_trace=show_trace,
    )


def _entries(nix_path: str) -> Iterator[tuple[str, str]]:
    """Yield the directories of NIX_PATH that have a name; a URL isn't fetched."""
    for entry in nix_path.split(":"):
        name, equals, path = entry.partition("=")
        if equals and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) and path.startswith("/") and Path(path).is_dir():
            yield name, path


@dataclass(frozen=True, slots=True)
class LocalClosure:
    """The files of the command: those of the repository around the present directory, `here`; without one, its own."""

    root: Path
    here: Path

    @classmethod
    def around(cls, here: Path) -> LocalClosure:
        """Return that of a directory."""
        return cls(root_around(here) or here, here)

    @property
    def path(self) -> str:
        """The present directory, from the root."""
        return "" if self.root == self.here else self.here.relative_to(self.root).as_posix()

    def relative(self, expression: str) -> str:
        """Return a Nix expression whose absolute paths lead where nix sees them: into the files relative, elsewhere without links."""
        up = os.path.relpath(self.root, self.here)

        def seen(found: re.Match[str]) -> str:
            path = Path(found[0])
            real = path.resolve() if path.exists() else path
            return f"{up}/{real.relative_to(self.root).as_posix()}" if real.is_relative_to(self.root) else str(real)

        return _PATH.sub(seen, expression)

    def outside(self, expression: str) -> Iterator[str]:
        """Yield the directories that hold what an expression names by absolute paths elsewhere."""
        for found in _PATH.findall(expression):
            path = Path(found).resolve()
            holds = path if path.is_dir() else root_around(path.parent) or path.parent
            if path.exists() and not path.is_relative_to(self.root) and holds != Path("/"):
                yield str(holds)


_PATH = re.compile(r"(?<![\w.~/:<}-])/[\w.+/-]*\w")
"""An absolute path in a Nix expression, in or out of a string, that no other text precedes."""
