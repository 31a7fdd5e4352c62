"""A release is installed once: what follows the first recorded commit, or goes back to it, is an upgrade; what is made anew isn't news."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from handler.app.build import Handler
from handler.config.renderer_settings import RendererSettings
from handler.model.event import Job
from handler.model.manifest import Manifest
from handler.model.render import UPGRADED, Rendered, RenderRequest, UnstableFields
from handler.model.result import Outcome, Result
from handler.model.rollout import ARGO_HOOK
from handler.model.tree import ReadSet, Tree
from handler.render import Sandbox
from tests.fakes.apiserver import ApiServer
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster, state_of
from tests.fakes.git_host import GitHost
from tests.unit.engine.rendering import FromElsewhere, rendering

pytestmark = pytest.mark.slow

HOOK = {"name": "hook", "namespace": "shop", "annotations": {ARGO_HOOK: "PreSync"}}


@dataclass
class OfRelease(FromElsewhere):
    """Renders one ConfigMap that says for which of the two it was made, and a hook; `acts`: what each render was for."""

    acts: list[str] = field(default_factory=list)

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        del sandbox
        entry = tree.lookup(request.path)
        reads = ReadSet.of({request.path: entry.oid if entry else ""})
        upgrade = request.installed not in ("", reads.digest())
        self.acts.append("upgrade" if upgrade else "install")
        data = {"act": self.acts[-1], "anew": str(len(self.acts))}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}, "data": data}
        hook = Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": HOOK}, "shop/b.yaml:1")
        made = Manifest.of(body, "shop/a.yaml:1")
        anew = {made.identity: UnstableFields(("/data/anew",), "randAlphaNum at shop/a.yaml:1")}
        return Rendered(
            (made, hook),
            reads,
            renderer="helm",
            unstable=anew,
            installs=reads.digest(),
        )


@dataclass
class Bench:
    server: ApiServer = field(default_factory=cluster)
    host: GitHost = field(default_factory=GitHost)
    renderer: OfRelease = field(default_factory=OfRelease)

    def push(self, value: str) -> str:
        sha = self.host.commit({"shop/Chart.yaml": "name: web\n", "shop/values.yaml": value})
        self.host.push(sha)
        return sha

    def handler(self) -> Handler:
        """One without a memory."""
        return rendering(self.server, self.host, self.renderer, settings={"renderer": RendererSettings("helm")})

    def run(self, trigger: str = "push", handler: Handler | None = None) -> Outcome:
        result = (handler or self.handler()).run(Job("shop", trigger))
        assert not result.problems, result.message
        return result.outcome

    def act(self) -> str:
        return str(self.server.must(Asked("GET", "/api/v1/namespaces/shop/configmaps/web", {}, None, "", ""))["data"]["act"])

    def hook(self) -> str:
        return str(
            self.server.must(Asked("GET", "/api/v1/namespaces/shop/configmaps/hook", {}, None, "", ""))["metadata"]["resourceVersion"]
        )


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.push("1")
    assert made.run() is Outcome.APPLIED
    assert made.act() == "install"
    return made


def test_the_way_back_to_the_first_commit_is_an_upgrade(bench: Bench) -> None:
    bench.push("2")
    assert bench.run() is Outcome.APPLIED
    assert bench.act() == "upgrade"
    bench.push("1")
    assert bench.run() is Outcome.UNCHANGED
    assert bench.act() == "upgrade"
    assert state_of(bench.handler()).installed == UPGRADED


def test_what_one_process_rendered_for_an_install_is_no_upgrade(bench: Bench) -> None:
    old = bench.handler()
    assert bench.run("drift", old) is Outcome.UNCHANGED  # it has rendered the first commit
    bench.push("2")
    bench.run()
    bench.push("1")
    assert bench.run("push", old) is Outcome.UNCHANGED
    assert bench.act() == "upgrade"


def test_a_release_whose_record_is_lost_is_not_installed_anew(bench: Bench) -> None:
    path = "/api/v1/namespaces/anneal-system/configmaps/anneal-shop"
    bench.server.answer(Asked("DELETE", path, {}, {}, "", ""))
    bench.run()
    assert bench.renderer.acts[-1] == "upgrade"
    assert state_of(bench.handler()).installed == UPGRADED


def test_a_render_that_differs_in_what_is_made_anew_runs_no_hook_again(bench: Bench) -> None:
    digest, hook = state_of(bench.handler()).digest, bench.hook()
    assert len(bench.renderer.acts) == 1
    assert bench.run("drift") is Outcome.UNCHANGED
    assert len(bench.renderer.acts) == 2
    assert (state_of(bench.handler()).digest, bench.hook()) == (digest, hook)


@dataclass
class Renaming(FromElsewhere):
    """Renders one ConfigMap whose name is another at each render."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        del sandbox
        self.requests.append(request)
        entry = tree.lookup(request.path)
        metadata = {"name": f"web-{len(self.requests)}", "namespace": "shop"}
        made = Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, "shop/a.yaml:1")
        return Rendered((made,), ReadSet.of({request.path: entry.oid if entry else ""}), renderer="helm", renamed=(made.identity,))


def test_an_object_whose_name_is_made_anew_is_replaced_by_a_commit_or_a_person_alone() -> None:
    server, host, renderer = cluster(), GitHost(), Renaming()

    def run(job: Job) -> Result:
        made = rendering(server, host, renderer, settings={"renderer": RendererSettings("helm")})
        return made.run(job)

    def push(value: str) -> None:
        host.push(host.commit({"shop/Chart.yaml": value}))

    def names() -> list[str]:
        found = server.must(Asked("GET", "/api/v1/namespaces/shop/configmaps", {}, None, "", ""))["items"]
        return sorted(each["metadata"]["name"] for each in found)

    push("1")
    assert run(Job("shop", "push")).outcome is Outcome.APPLIED
    held = run(Job("shop", "drift"))
    assert held.outcome is Outcome.HELD
    assert "1 object has another name at each render, and nothing else has changed" in held.message
    assert names() == ["web-1"]
    made = rendering(server, host, renderer, settings={"renderer": RendererSettings("helm")})
    waiting = state_of(made).held
    assert waiting
    assert run(Job("shop", "approve", approve=waiting.id, actor="ada")).outcome is Outcome.APPLIED
    assert names() == ["web-3"]
