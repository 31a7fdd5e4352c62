"""`anneal adopt`: what would change hands is listed by owner, and taken over in one run, without a word in anneal.yaml."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from handler.model.names import IDENTITY, PART_OF, applyset_id, state_name
from tests.fakes.apiserver.connection import straight
from tests.fakes.apiserver.server import Asked
from tests.unit.cli.in_memory_cli import CliShop, document
from tests.unit.cli.in_memory_cli import config_map as found_by
from tests.unit.engine.in_memory_shop import Body, config_map
from tests.unit.engine.killed_runs import Death, Killed

pytestmark = pytest.mark.slow

FLUX = {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
HELM = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "web"}
SET, BANK = sorted((applyset_id("tools", "shop", "Secret"), applyset_id(state_name("bank"), "bank")))
OWNERS = ("--from", "flux", "--from", "helm", "--from", SET, "--from", BANK)
NAMES = ("by-flux", "by-helm", "by-set", "by-target", "by-hand")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
    return CliShop.of(tmp_path, monkeypatch)


def declare(shop: CliShop) -> None:
    shop.files = {f"deploy/{name}.yaml": document("ConfigMap", name, data={"key": "1"}) for name in NAMES}
    shop.push()


def plant(shop: CliShop) -> None:
    """Let four tools and a person have one ConfigMap each, with a key that git lacks; git declares all five."""
    declare(shop)
    identity = {IDENTITY: "bank:/ConfigMap:shop/by-target"}
    marks: tuple[tuple[str, str, Body], ...] = (
        ("by-flux", "kustomize-controller", {"labels": FLUX}),
        ("by-helm", "helm", {"annotations": HELM}),
        ("by-set", "kubectl", {"labels": {PART_OF: SET}}),
        ("by-target", "anneal", {"labels": {PART_OF: BANK}, "annotations": identity}),
        ("by-hand", "kubectl-client-side-apply", {}),
    )
    for name, manager, metadata in marks:
        body = config_map(name, **metadata)
        shop.hands.create({**body, "data": {"key": "1", "dropped": "1"}}, manager)
    shop.hands.patch(found_by("by-flux"), {"data": {"scaled": "3"}}, "hpa")


def live(shop: CliShop) -> dict[str, Body]:
    return {name: shop.hands.live(found_by(name)) or {} for name in NAMES}


def marked(shop: CliShop) -> set[str]:
    """Which of them are the target's."""
    marks = {name: (each["metadata"].get("annotations") or {}).get(IDENTITY, "") for name, each in live(shop).items()}
    return {name for name, mark in marks.items() if mark.startswith("shop:")}


def test_what_isnt_named_is_refused_before_the_first_write(shop: CliShop) -> None:
    plant(shop)
    before = live(shop)
    result = shop.cli("adopt", "shop", "--from", "flux", "-y", code=1)
    assert f"    anneal adopt shop {' '.join(OWNERS)}" in result.stderr.splitlines(), result.stderr
    shown = shop.cli("adopt", "shop", "--from", "flux", "--dry-run", code=1).stdout
    assert "! refused ConfigMap/shop/by-helm: belongs to Helm release web" in shown
    shop.cli("apply", "shop", code=1)
    assert live(shop) == before


def test_never_is_never_taken_over(shop: CliShop) -> None:
    plant(shop)
    shop.configure("adopt: never")
    before = live(shop)
    assert "has `adopt: never`" in shop.cli("adopt", "shop", "--from", "flux", "-y", code=64).stderr
    assert live(shop) == before


def test_what_is_held_is_allowed_by_the_printed_command(shop: CliShop) -> None:
    """The guards hold as ever: what the run would delete beside the takeover waits for a person."""
    shop.configure("prune: {holdAbove: {count: 0, fraction: 0}}")
    shop.cli("apply", "shop")
    plant(shop)
    held = shop.cli("adopt", "shop", *OWNERS, "-y", code=3).stdout
    assert marked(shop) == set()
    (command,) = (line.partition(": ")[2] for line in held.splitlines() if line.startswith("allow exactly that: "))
    assert command.startswith(f"anneal adopt shop {' '.join(OWNERS)} --approve ")
    shop.cli("apply", "shop", code=1)
    assert command in shop.cli("status", "shop").stdout, "also once a plain run was refused"
    assert command in shop.cli("approve", "shop", "-y", code=1).stderr
    planned = shop.cli("adopt", "shop", *OWNERS, "--dry-run").stdout
    assert f"allow exactly that: {command.partition(' --approve')[0]}, then {command}" in planned
    shop.cli(*command.split()[1:], "-y")
    assert marked(shop) == set(NAMES)
    assert not shop.has("one")


def test_a_takeover_killed_at_any_write_is_finished_by_the_same_command(shop: CliShop) -> None:
    """Between the two a plain run is refused, and deletes nothing."""
    number, killed = 0, True
    while killed:
        number += 1
        plant(shop)
        before = live(shop)
        killed = dies(shop, Death(number, done=True))
        if killed and set(NAMES) - marked(shop) - {"by-hand"}:  # which no tool owns, and any run takes over
            shop.cli("apply", "shop", code=1)
        shop.cli("adopt", "shop", *OWNERS, "-y")
        assert marked(shop) == set(NAMES), number
        assert [each["metadata"]["uid"] for each in live(shop).values()] == [each["metadata"]["uid"] for each in before.values()]
        shop.cli("plan", "shop", "--exit-code")
        for name in NAMES:
            shop.hands.delete(found_by(name))
    assert number > len(NAMES), "it was killed after each of its writes"


def dies(shop: CliShop, death: Death) -> bool:
    """Take over, and die; False: it had ended before."""
    shop.hands.meet = lambda call, do: do() if call.asked.dry else death(call, do)
    with contextlib.suppress(Killed):
        shop.cli("adopt", "shop", *OWNERS, "-y")
    shop.hands.meet = straight
    if death.dead:  # its Lease runs out
        shop.hands.server.answer(Asked("DELETE", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/anneal-shop", {}, {}, "", ""))
    return death.dead
