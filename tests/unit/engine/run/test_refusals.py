"""What a refusal names: by the server's own words and by ours; and when that has changed."""

from __future__ import annotations

from typing import Any

import pytest

from handler.cluster.discovery import Discovery
from handler.engine.planner.siblings import NoSiblings
from handler.engine.run.refusals import MOST, RefusalFacts
from handler.model.errors import Basis, Problem
from handler.model.manifest import Manifest
from handler.model.names import Resource
from handler.plan.admission import Desired
from handler.plan.missing_settings import joined, lacking
from handler.state.record import Fact
from tests.fakes.apiserver import ApiServer
from tests.fakes.engine import cluster, engine
from tests.fakes.git_host import GitHost

MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
QUOTA = "ResourceQuota/shop/tight has no room: exceeded quota: tight, requested: count/configmaps=1"
VAP = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'no' with binding 'no' denied request: not here"


class Records(NoSiblings):
    """Siblings whose records are at these versions."""

    def __init__(self, **versions: str) -> None:
        self.at = versions

    def versions(self) -> dict[str, str]:
        return self.at


@pytest.fixture
def server() -> ApiServer:
    return cluster()


@pytest.fixture
def facts(server: ApiServer) -> RefusalFacts:
    handler = engine(server, GitHost())
    target = handler.settings.targets[0]
    return RefusalFacts(handler.api(target), Discovery(handler.api(target)), Records(back="7"))


def item(name: str = "a") -> Desired:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
    return Desired(Manifest.of(body, "shop/a.yaml:1"), MAPS)


def named(facts: RefusalFacts, *said: str, basis: Basis = Basis()) -> tuple[list[tuple[str, bool]], bool]:  # noqa: B008 - frozen
    """Return what a refusal names, each with whether it is there, and whether it is open."""
    problems = [Problem("ConfigMap/shop/a", text) for text in said]
    found = facts.named(problems, {"ConfigMap/shop/a": item()}, basis)
    return [(str(fact), bool(fact.seen)) for fact in found.facts], found.open


@pytest.mark.parametrize(
    ("said", "found", "is_open"),
    [
        ('namespaces "shop" not found', [("Namespace/shop", False)], False),  # as the server said, though it is there by now
        ('configmaps "db" not found', [("ConfigMap/shop/db", False)], False),
        ('riddles "x" not found', [], True),
        (QUOTA, [("ResourceQuota/shop/tight", False)], False),
        ("belongs to Flux Kustomization flux-system/shop", [("ConfigMap/shop/a", False)], False),
        ("an immutable field changed: spec.x: Invalid value: 1: field is immutable", [("ConfigMap/shop/a", False)], False),
        ("spec.replicas: Invalid value: -1: must be greater than or equal to 0", [], False),
        ("failed to create typed patch object (shop/a; v1, Kind=ConfigMap): .dat: field not declared in schema", [], False),
        (VAP, [("Namespace/shop", True)], True),
        ('admission webhook "x.example.com" denied the request: no', [("Namespace/shop", True)], True),
        ("404: the server knows no such kind", [("Namespace/shop", True)], True),
    ],
)
def test_the_facts_that_one_refusal_names(facts: RefusalFacts, said: str, found: list[tuple[str, bool]], is_open: bool) -> None:
    assert named(facts, said) == (found, is_open)


def test_each_object_of_refusals_that_were_put_together_is_named(facts: RefusalFacts) -> None:
    foreign = [Problem(f"ConfigMap/shop/{name}", "belongs to Flux Kustomization flux-system/shop") for name in "ab"]
    problems = joined(lacking(problem, "shop", {"adopt": ["flux"]}) for problem in foreign)
    assert len(problems) == 1
    found = facts.named(problems, {f"ConfigMap/shop/{name}": item(name) for name in "ab"}, Basis())
    assert [str(fact) for fact in found.facts] == ["ConfigMap/shop/a", "ConfigMap/shop/b"]


def test_facts_of_several_refusals_are_named_once_up_to_a_limit(facts: RefusalFacts) -> None:
    text = 'namespaces "web" not found'
    assert named(facts, text, text) == ([("Namespace/web", False)], False)
    many = [f'namespaces "n{number}" not found' for number in range(MOST + 1)]
    found, is_open = named(facts, *many)
    assert (len(found), is_open) == (MOST, True)


def test_facts_of_an_unserved_kind_and_of_a_siblings_record(facts: RefusalFacts) -> None:
    assert named(facts, basis=Basis(unserved=(("tea.example.com/v1", "Offer"),))) == ([("tea.example.com/v1 Offer", False)], False)
    assert named(facts, "is another's", basis=Basis(siblings=(("back", "7"),)))[1], "its configuration decides, too"
    assert named(facts, basis=Basis(strangers=("shop-old",))) == ([("target shop-old", False)], False), "it may become a sibling"
    assert facts.changed([Fact("shop-old")]) is None
    assert facts.changed([Fact("back")]) == Fact("back")
    assert facts.changed([Fact("back", seen="7")]) is None
    assert facts.changed([Fact("back", seen="6")]) == Fact("back", seen="6")
    assert facts.changed([Fact("gone", seen="6")]) == Fact("gone", seen="6")
    assert facts.changed([Fact(kind="Offer", api_version="tea.example.com/v1")]) is None
    assert facts.changed([Fact(kind="ConfigMap", api_version="v1")]) is not None


def test_a_fact_of_a_refusal_found_as_it_was_has_not_changed(facts: RefusalFacts) -> None:
    space = facts.named([Problem("ConfigMap/shop/a", VAP)], {"ConfigMap/shop/a": item()}, Basis()).facts
    assert facts.changed(space) is None
    absent = Fact("shop", "Namespace", "v1", "namespaces")
    assert facts.changed([absent]) == absent, "it is there by now"


def test_more_facts_than_a_refusal_has_are_not_looked_at() -> None:
    nothing: Any = None
    many = [Fact(f"n{number}", "ConfigMap", "v1", "configmaps", "shop") for number in range(MOST + 1)]
    assert RefusalFacts(nothing, nothing, NoSiblings()).changed(many) == many[MOST]
