"""What isn't git is an input like git: short-cuts, approvals and the kept render compare it; a renderer that changes is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.app.tables import Tables
from handler.config.renderer_settings import RendererSettings
from handler.config.settings import IgnoreRule, IgnoreSelect, Settings, Target
from handler.engine.run.refusals import MOST_READS
from handler.model.errors import ManifestInvalid
from handler.model.event import Job
from handler.model.manifest import Manifest
from handler.model.outside_inputs import APIS, VERSION
from handler.model.render import UPGRADED, Rendered, RenderRequest
from handler.model.result import Outcome, Result
from handler.model.tree import OUTSIDE, ReadSet, Tree, judged_from
from handler.render import RENDERERS, Sandbox
from handler.render.auto_renderer import AutoRenderer
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine, pushed, state_of
from tests.fakes.git_host import GitHost, HostSource
from tests.unit.engine.rendering import CHART, Elsewhere, FromElsewhere, rendering

pytestmark = pytest.mark.slow

CHARTED = {"shop/Chart.yaml": "name: web\n"}


@pytest.fixture
def server() -> ApiServer:
    return cluster()


@pytest.fixture
def host() -> GitHost:
    return GitHost()


def push(host: GitHost, files: dict[str, str]) -> str:
    sha = host.commit(files)
    host.push(sha)
    return sha


def live(server: ApiServer) -> dict[str, Any]:
    return dict(server.must(Asked("GET", "/api/v1/namespaces/shop/configmaps/web", {}, None, "", ""))["data"])


def ran(result: Result) -> Outcome:
    assert not result.problems, result.message
    return result.outcome


def test_a_drift_run_asks_again_what_is_not_git_and_a_push_without_change_asks_nothing(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    elsewhere = Elsewhere()
    handler = rendering(server, host, FromElsewhere("helm"), elsewhere)
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED
    assert CHART in state_of(handler).reads_paths
    elsewhere.says[CHART] = "2"
    elsewhere.asked.clear()
    assert ran(handler.run(Job("shop", "push"))) is Outcome.UNCHANGED
    assert elsewhere.asked == []
    assert ran(handler.run(Job("shop", "drift"))) is Outcome.APPLIED
    assert live(server)["key"] == "2"


def test_a_commit_that_changes_nothing_read_renders_only_where_what_is_elsewhere_changed(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    renderer, elsewhere = FromElsewhere("helm"), Elsewhere()
    handler = rendering(server, host, renderer, elsewhere)
    handler.run(Job("shop", "push"))
    count = len(renderer.requests)
    push(host, CHARTED | {"docs/a.md": "a"})
    assert ran(handler.run(Job("shop", "push"))) is Outcome.UNCHANGED
    assert len(renderer.requests) == count
    push(host, CHARTED | {"docs/a.md": "b"})
    elsewhere.says[CHART] = "2"
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED
    assert live(server)["key"] == "2"


def test_an_approval_is_of_what_was_elsewhere_when_it_was_held(server: ApiServer, host: GitHost) -> None:
    pushed(host)
    handler = rendering(server, host, FromElsewhere("helm"), elsewhere := Elsewhere())
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED
    push(host, CHARTED)
    held = handler.run(Job("shop", "push"))
    assert ran(held) is Outcome.HELD
    first = state_of(handler).held
    elsewhere.says[CHART] = "2"
    assert first
    again = handler.run(Job("shop", "approve", approve=first.id, actor="ada"))
    second = state_of(handler).held
    assert again.outcome is Outcome.HELD
    assert second
    assert second.id != first.id
    assert ran(handler.run(Job("shop", "approve", approve=second.id, actor="ada"))) is Outcome.APPLIED
    assert live(server)["key"] == "2"
    assert state_of(handler).renderer == "helm"


def test_a_renderer_that_the_tree_changes_is_held_and_names_how_to_stay(server: ApiServer, host: GitHost) -> None:
    pushed(host)
    handler = rendering(server, host, FromElsewhere())
    handler.run(Job("shop", "push"))
    assert state_of(handler).renderer == "file"
    push(host, {**host.commits[host.head], "shop/kustomization.yaml": "resources: [web.yaml]\n"})
    held = handler.run(Job("shop", "push"))
    assert ran(held) is Outcome.HELD
    assert (
        "kustomize makes its objects from now on, and file made the recorded ones; to stay with that: renderer: {type: file}"
        in held.message
    )
    assert state_of(handler).renderer == "file"
    assert live(server) == {"key": "1"}


def test_a_renderer_that_is_chosen_by_name_is_not_held(server: ApiServer, host: GitHost) -> None:
    pushed(host)
    rendering(server, host, FromElsewhere()).run(Job("shop", "push"))
    push(host, CHARTED)
    elsewhere = Elsewhere(says={CHART: "2"})
    handler = rendering(server, host, FromElsewhere("helm"), elsewhere, settings={"renderer": RendererSettings("helm")})
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED


def test_a_first_run_is_held_by_no_renderer_and_the_installation_is_remembered(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    renderer = FromElsewhere("helm")
    handler = rendering(server, host, renderer)
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED
    assert renderer.requests[0].installed == ""
    push(host, CHARTED | {"shop/values.yaml": "a: b\n"})
    assert ran(handler.run(Job("shop", "push"))) is Outcome.UNCHANGED
    assert renderer.requests[-1].installed == "a" * 64
    assert state_of(handler).installed == "a" * 64
    renderer.installs = "b" * 64
    push(host, CHARTED | {"shop/values.yaml": "a: c\n"})
    handler.run(Job("shop", "push"))
    assert (renderer.requests[-1].installed, state_of(handler).installed) == ("a" * 64, UPGRADED)
    renderer.installs = "a" * 64
    push(host, CHARTED | {"shop/values.yaml": "a: b\n"})
    handler.run(Job("shop", "push"))
    assert (renderer.requests[-1].installed, state_of(handler).installed) == (UPGRADED, UPGRADED), "it goes back, and is no install again"


def test_a_value_that_each_render_makes_anew_is_created_once_and_never_rotated(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    renderer, elsewhere = FromElsewhere("helm", unstable={"password": "randAlphaNum at templates/a.yaml:3"}), Elsewhere()
    rendering(server, host, renderer, elsewhere).run(Job("shop", "push"))
    first = live(server)
    assert first["password"]
    digest = state_of(rendering(server, host, renderer, elsewhere)).digest
    handler = rendering(server, host, renderer, elsewhere)  # one that remembers nothing renders anew
    found = handler.run(Job("shop", "drift"))
    assert ran(found) is Outcome.UNCHANGED
    assert (live(server), state_of(handler).digest) == (first, digest), "no rollout is due, no hook runs again"
    elsewhere.says[CHART] = "2"
    changed = handler.run(Job("shop", "drift"))
    assert ran(changed) is Outcome.APPLIED
    assert live(server) == first | {"key": "2"}
    assert changed.plan
    note = next(note for note in changed.plan.notes if "anew" in note)
    assert "randAlphaNum at templates/a.yaml:3" in note
    assert "ignore: [{select: {kind: ConfigMap, name: web, namespace: shop}, paths: [/data/password]}]" in note


def test_a_value_made_anew_that_the_target_ignores_needs_no_note(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    rules = (IgnoreRule(IgnoreSelect(kind="ConfigMap"), ("/data/password",)),)
    renderer = FromElsewhere("helm", unstable={"password": "randAlphaNum"})
    handler = rendering(server, host, renderer, settings={"ignore": rules})
    planned = handler.run(Job("shop", "push")).plan
    assert planned
    assert not [note for note in planned.notes if "anew" in note]


class Choosy(FromElsewhere):
    """Refuses what a chart says, unless it is good."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        found = super().render(tree, request, sandbox)
        with judged_from(found.reads):
            if dict(found.reads.paths)[CHART] != "good":
                raise ManifestInvalid.of("template", "the chart says no", place="templates/a.yaml:1")
        return found


def test_a_refusal_ends_where_what_it_follows_from_changes_elsewhere_than_in_git(
    server: ApiServer, host: GitHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(host, CHARTED)
    renderer, elsewhere = Choosy("helm"), Elsewhere(says={CHART: "bad"})
    assert rendering(server, host, renderer, elsewhere).run(Job("shop", "push")).outcome is Outcome.FAILED
    count = len(renderer.requests)
    with monkeypatch.context() as without_git:
        without_git.delattr(HostSource, "fetch")
        assert rendering(server, host, renderer, elsewhere).run(Job("shop", "tick")).outcome is Outcome.FAILED
    assert len(renderer.requests) == count, "nothing has changed"
    elsewhere.says[CHART] = "good"
    assert rendering(server, host, renderer, elsewhere).run(Job("shop", "tick")).outcome is Outcome.APPLIED


class Wide(Choosy):
    """A chart that reads more than a refusal keeps: `git` paths that aren't there, and `charts` beside its own."""

    git, charts = 0, 0

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        charts = {f"{CHART}/{number:03}": request.outside.ask(f"{CHART}/{number:03}") for number in range(self.charts)}
        try:
            return super().render(tree, request, sandbox)
        except ManifestInvalid as error:
            reads = dict(error.basis.reads) | {f"shop/{number}": "" for number in range(self.git)} | charts
            error.basis = replace(error.basis, reads=ReadSet.of(reads).paths)
            raise


def test_a_refusal_of_many_paths_keeps_what_it_follows_from_elsewhere_than_in_git(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    renderer, elsewhere = Wide("helm"), Elsewhere(says={CHART: "bad"})
    renderer.git = MOST_READS + 1
    handler = rendering(server, host, renderer, elsewhere)
    assert handler.run(Job("shop", "push")).outcome is Outcome.FAILED
    refusal = state_of(handler).status.refusal
    assert refusal
    assert (refusal.paths, refusal.reads, refusal.again) == ((CHART,), "", "")
    count = len(renderer.requests)
    still = handler.run(Job("shop", "tick"))
    assert still.outcome is Outcome.FAILED
    assert "other settings, a change of what it was rendered from elsewhere than in git; at once:" in str(still.problems[0])
    assert len(renderer.requests) == count, "nothing has changed"
    push(host, CHARTED | {"docs/a.md": "a"})
    assert handler.run(Job("shop", "push")).outcome is Outcome.FAILED
    assert len(renderer.requests) == count + 1, "whether git reads the same isn't known"
    elsewhere.says[CHART] = "good"
    assert handler.run(Job("shop", "tick")).outcome is Outcome.APPLIED


def test_a_refusal_keeps_so_many_reads_from_elsewhere_and_with_more_of_them_it_ends_by_itself(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    renderer, elsewhere = Wide("helm"), Elsewhere(says={CHART: "bad"})
    renderer.charts = MOST_READS
    handler = rendering(server, host, renderer, elsewhere)
    assert handler.run(Job("shop", "push")).outcome is Outcome.FAILED
    refusal = state_of(handler).status.refusal
    assert refusal
    assert (len(refusal.paths), refusal.paths[0], bool(refusal.again)) == (MOST_READS, CHART, True)
    elsewhere.says[f"{CHART}/001"] = "changed"
    count = len(renderer.requests)
    handler.run(Job("shop", "tick"))
    assert len(renderer.requests) == count + 1


class OfCluster(FromElsewhere):
    """Renders one ConfigMap of the cluster's version."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        del sandbox
        entry, outside = tree.lookup(request.path), request.outside
        metadata = {"name": "web", "namespace": "shop"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": outside.cluster().version}}
        reads = {request.path: entry.oid if entry else "", **{name: outside.ask(name) for name in (VERSION, APIS)}}
        return Rendered((Manifest.of(body, "shop/Chart.yaml:1"),), ReadSet.of(reads), renderer=self.name)


def test_a_cluster_that_was_upgraded_is_seen_by_a_drift_run_and_before_what_was_approved(server: ApiServer, host: GitHost) -> None:
    versions = ["v1.36.3"]

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        return (200, {"gitVersion": versions[-1]}, {}) if call.asked.path == "/version" else do()

    target = Target("shop", SHOP, ("shop",), path="shop")
    handler = engine(server, host, Settings(targets=(target,)), way=way)
    table = {"file": RENDERERS["file"], "helm": OfCluster("helm"), "kustomize": OfCluster()}
    handler.tables = Tables(renderers={"auto": AutoRenderer(table), **table})
    pushed(host)
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED
    push(host, CHARTED)
    assert ran(handler.run(Job("shop", "push"))) is Outcome.HELD
    held = state_of(handler).held
    assert held
    versions.append("v1.37.0")
    assert handler.run(Job("shop", "approve", approve=held.id, actor="ada")).outcome is Outcome.HELD
    held = state_of(handler).held
    assert held
    assert ran(handler.run(Job("shop", "approve", approve=held.id, actor="ada"))) is Outcome.APPLIED
    assert live(server)["key"] == "v1.37.0"
    versions.append("v1.38.0")
    assert ran(handler.run(Job("shop", "drift"))) is Outcome.APPLIED
    assert live(server)["key"] == "v1.38.0"


def test_no_path_of_git_is_taken_for_an_input_from_elsewhere() -> None:
    assert OUTSIDE.startswith("/")


def test_what_an_installs_hook_made_stays_unless_it_is_declared_otherwise(server: ApiServer, host: GitHost) -> None:
    push(host, CHARTED)
    renderer = FromElsewhere("helm")
    handler = rendering(server, host, renderer)
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED
    web = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}}
    unserved = {"apiVersion": "gone.example.com/v1", "kind": "Gone", "metadata": {"name": "web"}}
    renderer.rests = (Manifest.of(web), Manifest.of(unserved))
    renderer.names = "other"
    push(host, CHARTED | {"shop/values.yaml": "a: b\n"})
    assert ran(handler.run(Job("shop", "push"))) is Outcome.APPLIED
    assert live(server), "it isn't pruned"
    renderer.names = "web"
    push(host, CHARTED | {"shop/values.yaml": "a: c\n"})
    rendering(server, host, renderer, Elsewhere(says={CHART: "3"})).run(Job("shop", "push"))
    assert live(server)["key"] == "3", "it is declared, and applied"
