"""What Flux orders by `dependsOn` is ordered among the targets that stand for it, under their names."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.importing.custom_resources import converted, git, ks, lost, made, notes, read, release, repo, settings_of

KUSTOMIZE = "kustomize.toolkit.fluxcd.io/v1"


def order(*documents: Any) -> dict[str, tuple[str, ...]]:
    return {target.name: target.depends_on for target in read(converted(*documents)).targets}


def test_a_target_waits_for_those_that_stand_for_what_it_depends_on() -> None:
    apps = ks("apps", dependsOn=[{"name": "infra"}, {"name": "Dns.internal", "namespace": "flux-system"}, {"name": "infra"}])
    assert order(git(), apps, ks("infra"), ks("Dns.internal")) == {"apps": ("infra", "dns-internal"), "infra": (), "dns-internal": ()}
    assert settings_of(git(), apps, ks("infra"), ks("Dns.internal"))["spec.dependsOn[0].name"] == "dependsOn"


def test_a_name_counts_in_its_namespace_and_for_its_kind() -> None:
    other = made(KUSTOMIZE, "Kustomization", "infra", ks()["spec"], "team")
    other["spec"] = other["spec"] | {"sourceRef": {"kind": "GitRepository", "name": "shop", "namespace": "flux-system"}}
    apps = ks("apps", dependsOn=[{"name": "infra", "namespace": "team"}])
    assert order(git(), apps, ks("infra"), other)["apps"] == ("team-infra",)
    web, base = release("web", dependsOn=[{"name": "base"}]), release("base")
    assert order(git(), repo(), web, base, ks("base"))["web"] == ("flux-system-base",)


def test_what_became_no_target_and_an_expression_are_named() -> None:
    infra = ks("infra", sourceRef={"kind": "Bucket", "name": "x"})
    apps = ks("apps", dependsOn=[{"name": "infra", "readyExpr": "true"}])
    assert order(git(), apps, infra) == {"apps": ()}
    found = lost(git(), apps, infra)
    assert found["spec.dependsOn"] == "Kustomization/flux-system/infra became no target"
    assert "healthCheckExprs" in found["spec.dependsOn[0].readyExpr"]


def test_a_circle_is_broken_and_named() -> None:
    found = converted(git(), ks("a", dependsOn=[{"name": "b"}]), ks("b", dependsOn=[{"name": "a"}]), ks("c", dependsOn=[{"name": "a"}]))
    waits = {target.name: target.depends_on for target in read(found).targets}
    assert sum(map(bool, (waits["a"], waits["b"]))) == 1
    assert waits["c"] == ("a",)
    assert "in a circle" in notes(found)["spec.dependsOn"].text


def test_what_is_in_no_circle_comes_first_still() -> None:
    first, second = ks("a", dependsOn=[{"name": "dns"}, {"name": "b"}]), ks("b", dependsOn=[{"name": "dns"}, {"name": "a"}])
    waits = order(git(), first, second, ks("dns"))
    assert ("dns" in waits["a"], "dns" in waits["b"]) == (True, True)
    assert ("b" in waits["a"]) != ("a" in waits["b"])
