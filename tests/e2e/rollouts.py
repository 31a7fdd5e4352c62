"""Rollouts that shops carry out: a Rollout document over the shop's documents, and what their records tell."""

from __future__ import annotations

import json
from typing import Any

from handler.model.names import identity_of
from handler.state.record import Progress, StepRecord
from tests.e2e.api_proxy import is_object_write
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.one_target import Shop

ROLLOUT = "rollout.yaml"


def key_of(document: Document) -> str:
    """Return how a Rollout calls a document that a shop declares: its file."""
    return f"{str(identity_of(document)).replace('/', '-')}.yaml"


def step(action: str, document: Document, **more: Any) -> Document:
    return {"name": document["metadata"]["name"], "object": key_of(document), "action": action, **more}


def group(name: str, *steps: Document, parallel: bool = False) -> Document:
    return {"name": name, "parallel": parallel, "steps": list(steps)}


def document(*groups: Document, parallel: bool = False) -> Document:
    spec = {"parallel": parallel, "groups": list(groups)}
    return {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "all"}, "spec": spec}


def push(shop: Shop, documents: list[Document], *groups: Document, parallel: bool = False) -> str:
    """Declare these documents and this Rollout over them, and push both as one commit."""
    shop.work.write(ROLLOUT, json.dumps(document(*groups, parallel=parallel), indent=1))
    return shop.push(*documents)


def progress(shop: Shop) -> Progress:
    """Return what the record says of the newest rollout."""
    found = shop.state().rollout
    assert found, "no rollout was begun"
    return found


def outcomes(shop: Shop) -> dict[str, str]:
    return {each.step: each.outcome for each in progress(shop).steps}


def recorded(shop: Shop, name: str) -> StepRecord:
    return next(each for each in progress(shop).steps if each.step == name)


def opened(open_shop: Open, lease: float = 15.0) -> Shop:
    shop = open_shop(lease=lease, rollout=ROLLOUT)
    shop.create_namespace()
    return shop


def written(wire: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what was written of the shop's objects, as (method, name)."""
    return [(method, path.partition("?")[0].rpartition("/")[2]) for method, path in wire if is_object_write(method, path)]


def before(shop: Shop) -> list[Document]:
    """What lives before the rollout that has every action, one of them changed by a person since."""
    return [config_map(shop.name, name) for name in ("free", "settings", "seed", "migration", "old", "last")]


def everything(shop: Shop, version: str) -> tuple[list[Document], list[Document]]:
    """The documents and groups of a rollout that has every plain action, in order and at once."""
    free, settings, seed, migration, old, last = (
        config_map(shop.name, each["metadata"]["name"], {"key": version}) for each in before(shop)
    )
    fresh, web = config_map(shop.name, "fresh", {"key": version}), deployment(shop.name, "web", f"shop:{version}")
    groups = [
        group("prepare", step("DeleteIfExist", old), step("Recreate", migration)),
        group(
            "roll out",
            step("CreateOrUpdate", settings),
            step("CreateIfNotExist", seed),
            step("CreateIfNotExist", fresh),
            step("CreateOrUpdate", web, success=[{"healthy": {}}]),
            parallel=True,
        ),
        group("finish", step("CreateOrUpdate", last)),
    ]
    return [free, settings, seed, migration, old, last, fresh, web], groups


def data(shop: Shop, name: str) -> dict[str, str] | None:
    live = shop.live(config_map(shop.name, name))
    return live["data"] if live else None


def planted(shop: Shop) -> dict[str, str]:
    """Apply what is there before, without a Rollout; return the uids."""
    shop.configure(rollout="")
    shop.push(*before(shop))
    shop.applied()
    shop.configure(rollout=ROLLOUT)
    return {name: uid for name, (uid, _) in shop.versions().items()}


def assert_carried_out(shop: Shop, uids: dict[str, str], version: str) -> None:
    """Live is what every action makes of it, and the record says that each step is done."""
    wanted = dict.fromkeys(("free", "settings", "migration", "last"), version)
    assert {name: data(shop, name) for name in wanted} == {name: {"key": each} for name, each in wanted.items()}
    assert data(shop, "seed") == {"key": "1"}, "CreateIfNotExist leaves what is there alone"
    assert data(shop, "fresh") is not None
    assert data(shop, "old") is None
    now = {name: uid for name, (uid, _) in shop.versions().items()}
    kept = [f"ConfigMap/{shop.name}/{name}" for name in ("free", "settings", "seed", "last")]
    assert [now[name] for name in kept] == [uids[name] for name in kept], "nothing but what is recreated was deleted"
    assert now[f"ConfigMap/{shop.name}/migration"] != uids[f"ConfigMap/{shop.name}/migration"]
    assert set(outcomes(shop).values()) == {"done"}
    assert (progress(shop).outcome, shop.state().attempt, shop.state().commit) == ("done", None, shop.head)
