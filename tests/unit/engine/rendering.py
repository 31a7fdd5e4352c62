"""A renderer whose objects come from elsewhere than git: what the engine makes of that, whatever program renders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.app.tables import Tables
from handler.config.settings import Settings, Target
from handler.model.manifest import Manifest
from handler.model.outside_inputs import NothingOutside
from handler.model.render import Rendered, RenderRequest, UnstableFields
from handler.model.tree import ReadSet, Tree
from handler.render import RENDERERS, Sandbox
from handler.render.auto_renderer import AutoRenderer
from tests.fakes.apiserver import ApiServer
from tests.fakes.engine import SHOP, engine
from tests.fakes.git_host import GitHost

CHART = "//chart/web"


@dataclass(frozen=True)
class Elsewhere(NothingOutside):
    """What isn't git: `says` answers each name; `asked` counts."""

    says: dict[str, str] = field(default_factory=lambda: {CHART: "1"})
    asked: list[str] = field(default_factory=list)

    def ask(self, name: str) -> str:
        self.asked.append(name)
        return self.says.get(name, "")


@dataclass
class FromElsewhere:
    """Renders one ConfigMap of what a chart says; `requests`: each it was asked for; `unstable`: of the ConfigMap."""

    name: str = "kustomize"
    requests: list[RenderRequest] = field(default_factory=list)
    unstable: Mapping[str, str] = field(default_factory=dict)
    installs: str = "a" * 64
    names: str = "web"
    rests: tuple[Manifest, ...] = ()

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        self.requests.append(request)
        said, entry = request.outside.ask(CHART), tree.lookup(request.path)
        number = str(len(self.requests))
        data = {"key": said, **dict.fromkeys(self.unstable, number)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.names, "namespace": "shop"}, "data": data}
        made = Manifest.of(body, f"{request.path}/Chart.yaml:1")
        reads = ReadSet.of({request.path: entry.oid if entry else "", CHART: said})
        paths = tuple(f"/data/{name}" for name in self.unstable)
        unstable = {made.identity: UnstableFields(paths, ", ".join(self.unstable.values()))} if paths else {}
        return Rendered((made,), reads, renderer=self.name, unstable=unstable, installs=self.installs, rests=self.rests)


def rendering(
    server: ApiServer, host: GitHost, renderer: FromElsewhere, elsewhere: Elsewhere | None = None, settings: Mapping[str, Any] | None = None
) -> Handler:
    """Return a handler whose directories with a Chart.yaml or kustomization are this renderer's; it shares no memory."""
    target = replace(Target("shop", SHOP, ("shop",), path="shop"), **(settings or {}))
    made = engine(server, host, Settings(targets=(target,)))
    table = {"file": RENDERERS["file"], "kustomize": renderer, "helm": renderer}
    made.tables = Tables(renderers={"auto": AutoRenderer(table), **table})
    inputs = elsewhere or Elsewhere()
    made.dependencies("shop").preparer.outside = lambda _recorded, _commit: inputs
    return made
