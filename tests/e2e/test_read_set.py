"""What a render reads decides whether a commit is deployed: a file outside the path that it follows counts, the rest doesn't."""

from __future__ import annotations

import json

import pytest

from handler.model.render import Rendered, RenderRequest
from handler.model.result import Outcome
from handler.model.tree import Tree
from handler.render import RENDERERS
from handler.render.sandbox import Sandbox
from tests.e2e.documents import config_map
from tests.e2e.one_target import Shop


@pytest.fixture
def renders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits that were rendered."""
    seen: list[str] = []
    real = type(RENDERERS["file"]).render

    def render(self: object, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        seen.append(tree.commit.sha)
        return real(self, tree, request, sandbox)  # type: ignore[arg-type]  # only its type is known here

    monkeypatch.setattr(type(RENDERERS["file"]), "render", render)
    return seen


@pytest.fixture
def linked(shop: Shop) -> Shop:
    """A shop one of whose manifests lies outside the path, and is linked to."""
    shop.work.link("deploy/common.yaml", "../common/base.yaml")
    shop.work.write("common/base.yaml", json.dumps(config_map(shop.name, "common")))
    shop.work.write("deploy/own.yaml", json.dumps(config_map(shop.name, "own")))
    shop.work.commit("Linked")
    shop.work.push()
    shop.applied()
    return shop


def test_a_change_only_in_a_file_outside_the_path_that_is_read_is_deployed(linked: Shop) -> None:
    linked.work.write("common/base.yaml", json.dumps(config_map(linked.name, "common", {"key": "2"})))
    sha = linked.work.commit("Only the common file")
    linked.work.push()
    linked.applied()
    linked.documents = (config_map(linked.name, "common", {"key": "2"}), config_map(linked.name, "own"))
    linked.assert_converged(sha)


def test_a_change_elsewhere_is_recorded_without_a_render_also_by_a_restarted_handler(linked: Shop, renders: list[str]) -> None:
    linked.work.write("docs/readme.md", "New words")
    sha = linked.work.commit("Elsewhere")
    linked.work.push()
    linked.configure()
    assert linked.run().outcome is Outcome.UNCHANGED
    assert (renders, linked.state().commit) == ([], sha)


def test_a_link_that_leads_elsewhere_now_is_deployed(linked: Shop) -> None:
    linked.work.link("deploy/common.yaml", "../common/next.yaml")
    linked.work.write("common/next.yaml", json.dumps(config_map(linked.name, "common", {"key": "3"})))
    sha = linked.work.commit("The link moved")
    linked.work.push()
    linked.applied()
    linked.documents = (config_map(linked.name, "common", {"key": "3"}), config_map(linked.name, "own"))
    linked.assert_converged(sha)
