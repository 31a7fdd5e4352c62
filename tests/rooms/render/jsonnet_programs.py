"""Programs of jsonnet, and what our renderer makes of them by either engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.config.settings_shape import Json
from handler.model.errors import AnnealError, Problem
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox, render_tools
from tests.fakes.source_tree import FakeTree

Files = Mapping[str, str | bytes]
PROGRAM, LIBRARY = "program", "library"
ENGINES = (PROGRAM, LIBRARY)
both = pytest.mark.parametrize("engine", ENGINES)


@contextmanager
def where(engine: str) -> Iterator[None]:
    """Have an engine evaluate: the library does where no program is installed."""
    with pytest.MonkeyPatch.context() as patch:
        if engine == LIBRARY:
            patch.setenv(render_tools.DIRECTORY, "")
            patch.setenv("PATH", "")
        yield


def config(name: str, data: str = "{}") -> str:
    """An object as jsonnet writes one."""
    return f"{{ apiVersion: 'v1', kind: 'ConfigMap', metadata: {{ name: '{name}' }}, data: {data} }}"


def rendered(
    sandbox: Sandbox,
    files: Files,
    engine: str = PROGRAM,
    *,
    links: Mapping[str, str] | None = None,
    more: Any = (),
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Rendered:
    """Render `deploy`. `more`: fields of the request."""
    request = RenderRequest("deploy", options=RendererSettings("jsonnet", **options))
    with where(engine):
        return RENDERERS["jsonnet"].render(FakeTree(files, links), replace(request, **dict(more)), sandbox)


def refused(sandbox: Sandbox, files: Files, engine: str = PROGRAM, **more: Any) -> tuple[Problem, ...]:
    """Render, which must fail; return the mistakes."""
    with pytest.raises(AnnealError) as caught:
        rendered(sandbox, files, engine, **more)
    assert caught.value.who in ("author", "operator")
    return caught.value.problems


def data_of(found: Rendered) -> Mapping[str, Any]:
    """Return the data of each ConfigMap by its name."""
    return {each.identity.name: each.body().get("data") for each in found.manifests}


def as_json(text: str) -> Json:
    return Json(text)
