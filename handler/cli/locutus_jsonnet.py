"""`anneal locutus --renderer=jsonnet`: its flags -> a target of files on disk, and the options of its renderer.

    --renderer.jsonnet.entrypoint=FILE   the program; imports may lead anywhere in the checkout around it
    --renderer.jsonnet.jpaths=DIR        also several times, and DIR,DIR; the last one is searched first
    --renderer.jsonnet.ext-str=k=v       also several times
    --config-file=FILE                   what the program imports as generic-operator/config

Law: what lies outside of the checkout, or without one of the directory that all named files share, isn't read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from handler.cli.checkout_parts import built_of
from handler.cli.local_source import CheckoutParts
from handler.config.renderer_settings import JSONNET, RendererSettings
from handler.config.settings_shape import Json
from handler.render.sandbox import Sandbox
from handler.source.checkout import root_around

_FLAG = "--renderer.jsonnet"


@dataclass(frozen=True, slots=True)
class JsonnetFlags:
    """What the flags name. `strings`: external variables; `searched`: directories of imports; `config`: a file of configuration."""

    entrypoint: Path
    strings: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    config: Path | None = None

    @property
    def root(self) -> Path:
        """The checkout around the program; without one the directory that everything named lies in."""
        found = root_around(self.entrypoint.parent)
        return found or Path(os.path.commonpath([Path.cwd().resolve(), *self._named()]))

    def options(self) -> RendererSettings:
        """Return the renderer's options. Raises click.UsageError for what can't be one."""
        variables: dict[str, str] = {}
        for each in self.strings:
            name, equals, value = each.partition("=")
            if not equals or not name:
                raise click.UsageError(f"{_FLAG}.ext-str: expected name=value, found {each!r}")
            variables[name] = value
        return RendererSettings(
            JSONNET,
            entrypoint=self.entrypoint.name,
            jpath=tuple(self._inside(each, f"{_FLAG}.jpaths") for each in self._directories()),
            ext_vars=Json(json.dumps(variables, sort_keys=True) if variables else ""),
            config_file=os.path.relpath(self.root / self._inside(self.config, "--config-file"), self._directory) if self.config else "",
        )

    def read(self, sandbox: Sandbox) -> CheckoutParts:
        """Return the program's directory with what it imports as one commit. Raises SourceRefused, click.UsageError."""
        path = self._inside(self._directory, f"{_FLAG}.entrypoint")
        path = "" if path == "." else path
        parts = built_of(self.root, path, sandbox, self.options())
        return CheckoutParts(self.root, path, parts)

    @property
    def _directory(self) -> Path:
        return self.entrypoint.parent.resolve()

    def _directories(self) -> Iterator[Path]:
        return (Path(each) for text in self.searched for each in text.split(",") if each)

    def _named(self) -> Iterator[Path]:
        yield self._directory
        yield from (each.resolve() for each in self._directories())
        if self.config:
            yield self.config.resolve().parent

    def _inside(self, path: Path, flag: str) -> str:
        """Return a path from the root."""
        real, root = path.resolve(), self.root
        if not real.is_relative_to(root):
            raise click.UsageError(f"{flag}: {path} lies outside of {root}, the checkout of the program")
        return real.relative_to(root).as_posix()
