"""What `anneal kubernixos` deploys: the closure of MODULES and PACKAGES, in the checkout around the present directory; or a target.

Without a configuration the target may touch every namespace and kind, as upstream's kubectl; it takes over what the original deployed, and
deletes nothing but by the word `prune`, which a person answers: so there no kind must be named first.
"""

from __future__ import annotations

from pathlib import Path

import click

from handler.cli.kubernixos_flags import NAMESPACE
from handler.cli.local_source import Directory
from handler.cli.session import Session
from handler.config.git_settings import Repository, directory_url
from handler.config.renderer_settings import RendererSettings
from handler.config.settings import Prune, Settings, Target
from handler.model.errors import ConfigInvalid
from handler.model.names import KUBERNIXOS
from handler.source.checkout import root_around

_EXAMPLE = "export MODULES='[ ./module.nix ]' PACKAGES='import <nixpkgs> { }'"


def closure(session: Session, name: str, target: str | None, *, show_trace: bool) -> Target:
    """Return what is deployed, and make it a target of the session. Raises AnnealError, click.UsageError."""
    return _configured(session, target) if target else _local(session, name, show_trace=show_trace)


def _configured(session: Session, name: str) -> Target:
    found = session.target(name)
    if found.compat != KUBERNIXOS:
        raise click.UsageError(f"--target {name}: its objects carry no label of Kubernixos; write `compat: kubernixos` on it")
    return found


def _local(session: Session, name: str, *, show_trace: bool) -> Target:
    modules = session.environ.get("MODULES", "")
    if not modules:
        raise ConfigInvalid.of("MODULES", "must be set in environment", fix=_EXAMPLE)
    here = Path.cwd().resolve()
    root = root_around(here) or here
    made = Target(
        name=name,
        repository=Repository(url=directory_url(name)),
        namespaces=("*",),
        path="" if root == here else here.relative_to(root).as_posix(),
        namespace=NAMESPACE,
        cluster_scoped=("*",),
        renderer=renderer(modules, session.environ.get("PACKAGES", ""), root, here, show_trace=show_trace),
        adopt=("kubernixos",),
        compat="kubernixos",
        prune=Prune(kinds=("*",)),
    )
    session.sandbox.weak = True  # files of this machine, as `nix eval` would take them
    return session.use(Settings((made,), state_namespace=NAMESPACE), Directory(root))


def renderer(modules: str, packages: str, root: Path, here: Path, *, show_trace: bool) -> RendererSettings:
    raise NotImplementedError
