"""A report says what happened: what commands tell of runs and records, beside what then lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.unit.cli.in_memory_cli import URL, CliShop, document
from tests.unit.engine.in_memory_cluster import NO_ROOM
from tests.unit.engine.in_memory_shop import RECORD as ELSEWHERE

pytestmark = pytest.mark.slow

RECORD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ELSEWHERE.name, "namespace": "shop"}}
INVALID: Reply = 422, {"kind": "Status", "reason": "Invalid", "code": 422, "message": "data: Invalid value"}, {}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
    return CliShop.of(tmp_path, monkeypatch)


def plain(shop: CliShop, key: str) -> str:
    """Read a key of the record as people do."""
    return str((shop.hands.live(RECORD) or {})["data"].get(key, ""))


def refusing(reply: Reply, name: str) -> Callable[[Call, Callable[[], Reply]], Reply]:
    """The server takes every dry-run, and refuses writes of one object."""
    return lambda call, do: reply if call.writes and call.asked.path.endswith(f"/{name}") else do()


def test_an_object_deleted_for_a_recreate_that_exceeds_the_quota_is_reported(shop: CliShop) -> None:
    def declare(value: str) -> None:
        body = {"kind": "ConfigMap", "apiVersion": "v1", "immutable": True, "data": {"value": value}}
        shop.files["deploy/c0.yaml"] = json.dumps({**body, "metadata": {"name": "c0", "annotations": {"anneal.dev/recreate": "allow"}}})
        shop.push()

    declare("1")
    shop.cli("apply")
    declare("2")
    shop.hands.meet = lambda call, do: NO_ROOM if call.asked.method == "PATCH" and call.writes and call.asked.path.endswith("/c0") else do()
    ended = shop.json("apply", "-y", code=1)
    assert not shop.has("c0")
    assert (ended["code"], ended["counts"]) == ("quota-exceeded", {"pruned": 1})
    (change,) = ended["changes"]
    assert (change["action"], change["object"], change["done"]) == ("prune", "ConfigMap/shop/c0", True)
    assert change["reason"] == "was deleted to be made anew, and isn't yet"
    shop.hands.meet = straight
    assert shop.json("apply")["counts"]["created"] == 1
    assert shop.has("c0")


def test_the_first_write_that_is_refused_is_no_apply_that_failed_in_the_middle(shop: CliShop) -> None:
    shop.configure("validate: none")
    shop.files = {"deploy/bad.yaml": document("ConfigMap", "bad")}
    shop.push()
    shop.hands.meet = refusing(INVALID, "bad")
    ended = shop.json("apply", code=1)
    assert (ended["code"], ended["counts"], ended["changes"]) == ("plan-refused", {}, [])


def test_an_approval_and_a_rollback_are_called_so(shop: CliShop) -> None:
    shop.declare("one", *(f"n{number}" for number in range(13)))
    shop.push()
    shop.cli("apply")
    shop.declare("one")
    shop.push()
    held = shop.json("apply", code=3)
    assert [change["done"] for change in held["changes"]] == [False] * 13
    approved = shop.json("approve", "shop", held["held"]["id"])
    assert (approved["trigger"], approved["counts"]["pruned"]) == ("approval", 13)
    assert shop.json("rollback", "-y")["trigger"] == "rollback"
    assert shop.json("unpin", code=3)["outcome"] == "held"
    back, approval, *_ = [run for run in shop.json("history")["runs"] if run["outcome"] == "applied"]
    assert [run["trigger"] for run in (back, approval)] == ["rollback", "approval"]
    text = shop.cli("history").stdout
    assert f"rollback by {back['actor']}" in text
    assert f"approval by {approval['actor']}" in text
    assert "replay" not in text


def test_a_first_run_has_a_repository_once_it_has_begun_to_apply(shop: CliShop) -> None:
    shop.host.down = True
    shop.cli("apply", code=1)
    assert (plain(shop, "repository"), plain(shop, "commit")) == ("", "")
    shop.host.down = False
    shop.configure("validate: none")
    shop.declare("one", "zz")
    shop.push()
    shop.hands.meet = refusing(INVALID, "zz")
    shop.cli("apply", code=1)
    assert (plain(shop, "repository"), plain(shop, "commit")) == (URL, "")
