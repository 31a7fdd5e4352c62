"""A refused commit isn't tried again by ticks until something changes that its refusal names; then the next tick applies it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.render.file_renderer import FileRenderer
from handler.state.record import Refusal
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.unit.engine.in_memory_shop import RECORD, InMemoryShop, body, config_map

pytestmark = pytest.mark.slow

FOREIGN = "argocd.argoproj.io/instance"


@dataclass
class Refused(InMemoryShop):
    """`seen`: what was asked of the cluster; `renders`: the commits that were rendered."""

    seen: list[tuple[str, str]] = field(default_factory=list)
    renders: list[str] = field(default_factory=list)

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.seen.append((call.asked.method, call.asked.path))
        return super()._way(call, do)

    def refused(self, code: str = "plan-refused", trigger: str = "push") -> Refusal:
        """Run; it must be refused. Return what the record keeps of that."""
        self.renders.clear()
        result = self.run(trigger)
        assert (result.outcome, result.code) == (Outcome.FAILED, code), result
        found = self.state().status.refusal
        assert found
        return found

    def still(self, facts: int, trigger: str = "tick") -> Result:
        """A tick without a memory reads the record, the cluster's name and the facts, and nothing else; nothing is rendered or written."""
        self.renders.clear()
        self.seen.clear()
        before = self.server.store.get(RECORD)
        result = self.another().run(Job("shop", trigger))
        assert (result.outcome, self.renders) == (Outcome.FAILED, []), result
        assert "is refused still" in str(result.problems[0])
        own = [path for _, path in self.seen if path.endswith((f"/configmaps/{RECORD.name}", "/namespaces/kube-system"))]
        assert {method for method, _ in self.seen} == {"GET"}
        assert len(self.seen) - len(own) <= facts, self.seen
        assert self.server.store.get(RECORD) == before
        return result

    def heals(self) -> None:
        """The next tick applies the head."""
        assert self.another().run(Job("shop", "tick")).outcome is Outcome.APPLIED
        assert (self.state().status.refusal, self.state().commit) == (None, self.host.head)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Refused:
    made, render = Refused(), FileRenderer.render

    def counted(self: FileRenderer, tree: Any, *rest: Any) -> Any:
        made.renders.append(tree.commit.sha)
        return render(self, tree, *rest)

    monkeypatch.setattr(FileRenderer, "render", counted)
    return made


def test_a_missing_namespace(shop: Refused) -> None:
    shop.configure(namespaces=("shop", "late"))
    shop.push(config_map("a"))
    shop.applied()
    shop.push(config_map("a"), config_map("b", space="late"))
    found = shop.refused()
    assert [(fact.kind, fact.name, fact.seen) for fact in found.facts] == [("Namespace", "late", "")]
    assert found.again == "", "what isn't there can't have changed in between"
    for _ in range(2):
        said = str(shop.still(1).problems[0])
    assert "a change of Namespace/late" in said
    assert "anneal apply shop" in said
    shop.create(body("late", "Namespace", space=""))
    shop.heals()


def test_an_object_of_another_owner(shop: Refused) -> None:
    theirs = shop.create(config_map("theirs", labels={FOREIGN: "shop"}))
    shop.push(config_map("a"), config_map("theirs"))
    found = shop.refused()
    assert [str(fact) for fact in found.facts] == ["ConfigMap/shop/theirs"]
    assert found.again, "it was looked at after the verdict"
    shop.still(1)
    shop.patch(theirs, {"metadata": {"labels": {FOREIGN: None}}})
    shop.heals()


def test_a_mistake_of_git_alone_is_not_tried_again_before_a_new_commit(shop: Refused) -> None:
    shop.push(config_map("a"))
    shop.applied()
    shop.push(config_map("a"), config_map("b") | {"replica": 1})
    found = shop.refused()
    assert (found.facts, found.again) == ((), "")
    shop.still(0)
    shop.push(config_map("a"), **{"broken.yaml": "a: [1"})
    found = shop.refused("manifest-invalid")
    assert (found.facts, found.again) == ((), "")
    shop.still(0)
    shop.still(0, "push")
    shop.push(config_map("a", "2"))
    shop.heals()


@pytest.mark.parametrize(
    "text", ["a: [1", '{"apiVersion": "v1", "kind": "Nonesuch", "metadata": {"name": "x"}}'], ids=["rendered", "planned"]
)
def test_a_push_that_touches_nothing_it_reads_is_refused_without_a_render(shop: Refused, text: str) -> None:
    first = shop.push(**{"broken.yaml": text})
    shop.run()
    shop.renders.clear()
    second = shop.host.commit({**shop.host.commits[first], "docs/README.md": "hello"})
    shop.host.push(second)
    result = shop.another().run(Job("shop", "push"))
    assert (result.outcome, result.commit, shop.renders) == (Outcome.FAILED, second, [])
    assert f"reads what {first[:12]} has read" in str(result.problems[0])
    state = shop.state()
    assert [(run.commit, run.message) for run in state.history] == [(second, state.status.message), (first, state.status.message)]
    assert state.status.refusal
    assert (state.status.refusal.commit, state.status.failures) == (second, 2)


def test_changed_settings_and_requests_by_hand_skip_the_back_off(shop: Refused) -> None:
    shop.push(config_map("a"), config_map("b", space="elsewhere"))
    shop.refused()
    for asked in ("oneoff", "replay"):
        shop.refused(trigger=asked)
        assert len(shop.renders) == 1
    shop.configure(namespaces=("shop", "elsewhere"))
    (fact,) = shop.refused(trigger="tick").facts
    assert (len(shop.renders), fact.name) == (1, "elsewhere")
    shop.configure(validate="none")
    shop.renders.clear()
    shop.run("tick")
    assert len(shop.renders) == 1, "settings that change only how a run looks count, too"


def test_a_record_without_a_refusal_is_tried_once(shop: Refused) -> None:
    shop.push(config_map("b", space="elsewhere"))
    shop.refused()
    shop.handler.store(shop.target).update(lambda state: replace(state, status=replace(state.status, refusal=None)))
    shop.refused(trigger="tick")
    assert len(shop.renders) == 1
    shop.still(0)
