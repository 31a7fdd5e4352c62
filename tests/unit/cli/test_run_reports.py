"""A report says what happened: what commands tell of runs and records, beside what then lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.unit.cli.in_memory_cli import URL, CliShop, config_map, document
from tests.unit.engine.in_memory_cluster import NO_ROOM
from tests.unit.engine.in_memory_shop import RECORD as ELSEWHERE

pytestmark = pytest.mark.slow

NAMES = [f"c{number}" for number in range(5)]
RECORD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ELSEWHERE.name, "namespace": "shop"}}
INVALID: Reply = 422, {"kind": "Status", "reason": "Invalid", "code": 422, "message": "data: Invalid value"}, {}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
    return CliShop.of(tmp_path, monkeypatch)


def there(shop: CliShop) -> set[str]:
    """Return the ConfigMaps of the test that live."""
    return {name for name in NAMES if shop.has(name)}


def plain(shop: CliShop, key: str) -> str:
    """Read a key of the record as people do."""
    return str((shop.hands.live(RECORD) or {})["data"].get(key, ""))


def actions(ended: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names of what was done, by action."""
    found: dict[str, list[str]] = {}
    for change in ended["changes"]:
        assert change["done"]
        found.setdefault(change["action"], []).append(change["object"].rpartition("/")[2])
    return {action: sorted(names) for action, names in found.items()}


def refusing(reply: Reply, chosen: Callable[[str], bool]) -> Callable[[Call, Callable[[], Reply]], Reply]:
    """The server takes every dry-run, and refuses writes of objects of some names."""
    return lambda call, do: reply if call.writes and chosen(call.asked.path.rpartition("/")[2]) else do()


# --- quotas
def test_a_quota_used_up_in_the_middle_runs_sync_fail_hooks_and_rolls_back(shop: CliShop) -> None:
    shop.configure("wait: {timeout: 2m}")
    old = shop.host.head
    shop.cli("apply")
    hook = {"name": "tell", "annotations": {"argocd.argoproj.io/hook": "SyncFail"}}
    tell = {"apiVersion": "v1", "kind": "Secret", "metadata": hook}
    shop.declare("one", "two", "three", *NAMES, tell=json.dumps(tell))
    new = shop.push()
    shop.hands.meet = refusing(NO_ROOM, {*NAMES[1:]}.__contains__)
    ended = shop.json("apply", code=1)
    assert (ended["outcome"], ended["code"], ended["who"]) == ("failed", "quota-exceeded", "operator")
    assert (shop.has("tell", "Secret"), there(shop)) == (True, {"c0"})
    assert (ended["counts"], len(ended["problems"])) == ({"created": 1}, 4)
    shop.configure("wait: {timeout: 2m}\nrollback: {onFailure: true}")
    ended = shop.json("apply", code=1)
    assert (ended["outcome"], ended["commit"], ended["code"], ended["who"]) == ("rolled-back", old, "quota-exceeded", "operator")
    assert there(shop) == set()
    assert [(run["outcome"], run["commit"]) for run in shop.json("history")["runs"][:2]] == [("rolled-back", old), ("failed", new)]


def test_an_object_deleted_for_a_recreate_that_exceeds_the_quota_is_reported(shop: CliShop) -> None:
    def declare(value: str) -> None:
        body = {"kind": "ConfigMap", "apiVersion": "v1", "immutable": True, "data": {"value": value}}
        shop.files["deploy/c0.yaml"] = json.dumps({**body, "metadata": {"name": "c0", "annotations": {"anneal.dev/recreate": "allow"}}})
        shop.push()

    declare("1")
    shop.cli("apply")
    declare("2")
    shop.hands.meet = lambda call, do: NO_ROOM if call.writes and call.asked.path.endswith("/c0") and call.asked.method == "PATCH" else do()
    ended = shop.json("apply", "-y", code=1)
    assert there(shop) == set()
    assert (ended["code"], ended["counts"], actions(ended)) == ("quota-exceeded", {"pruned": 1}, {"prune": ["c0"]})
    assert ended["changes"][0]["reason"] == "was deleted to be made anew, and isn't yet"
    shop.hands.meet = straight
    assert shop.json("apply")["counts"]["created"] == 1
    assert there(shop) == {"c0"}


# --- refusals
def test_a_run_that_is_refused_in_the_middle_has_a_code_of_its_own(shop: CliShop) -> None:
    """Nothing is validated here: the ConfigMap of a later wave is refused when the others are there."""
    shop.configure("validate: none")
    shop.cli("apply")
    later = {"name": "bad", "annotations": {"argocd.argoproj.io/sync-wave": "5"}}
    shop.declare("one", "two", "three", *NAMES, bad=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": later}))
    shop.push()
    shop.hands.meet = refusing(INVALID, "bad".__eq__)
    ended = shop.json("apply", code=1)
    assert there(shop) == {*NAMES}
    assert (ended["code"], ended["who"], ended["counts"]) == ("apply-failed", "author", {"created": 5})
    assert actions(ended) == {"create": NAMES}
    assert [problem["place"] for problem in ended["problems"]] == ["deploy/bad.yaml:1"]
    assert "ConfigMap/shop/c0 create" in shop.cli("history", "-v").stdout


def test_the_first_write_that_is_refused_is_no_apply_that_failed_in_the_middle(shop: CliShop) -> None:
    shop.configure("validate: none")
    shop.files = {"deploy/bad.yaml": document("ConfigMap", "bad")}
    shop.push()
    shop.hands.meet = refusing(INVALID, "bad".__eq__)
    ended = shop.json("apply", code=1)
    assert (ended["code"], ended["counts"], ended["changes"]) == ("plan-refused", {}, [])


# --- what is said
def test_prunes_are_not_objects_written(shop: CliShop) -> None:
    shop.cli("apply")
    shop.declare("one", value="2")
    shop.push()
    ended = shop.json("apply")
    assert (ended["message"], ended["counts"]) == ("1 object written, 2 pruned", {"configured": 1, "unchanged": 1, "pruned": 2})
    shop.declare(value="2")
    shop.push()
    assert shop.json("apply", "-y")["message"] == "1 object pruned"
    assert not shop.has("one")


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


# --- the record
def test_the_applied_commit_stands_in_the_record_as_plain_text(shop: CliShop) -> None:
    shop.cli("apply")
    assert [plain(shop, key) for key in ("commit", "repository", "path")] == [shop.host.head, URL, "deploy"]
    shop.declare("one", "two", "three", value="2")
    head = shop.push()
    shop.cli("apply")
    assert plain(shop, "commit") == head


def test_a_commit_that_somebody_wrote_into_the_record_is_not_believed(shop: CliShop) -> None:
    shop.cli("apply")
    shop.hands.patch(RECORD, {"data": {"commit": "main"}})
    assert "data key `commit`: commit: expected 40 to 64 hex digits" in shop.cli("apply", code=1).stderr
    shop.hands.patch(RECORD, {"data": {"commit": "f" * 40}})
    ended = shop.json("apply")
    assert (ended["outcome"], ended["counts"]) == ("unchanged", {"unchanged": 4})
    assert plain(shop, "commit") == shop.host.head


def test_a_first_run_has_a_repository_once_it_has_begun_to_apply(shop: CliShop) -> None:
    shop.host.down = True
    shop.cli("apply", code=1)
    assert (plain(shop, "repository"), plain(shop, "commit")) == ("", "")
    shop.host.down = False
    shop.configure("validate: none")
    shop.declare("one", "zz")
    shop.push()
    shop.hands.meet = refusing(INVALID, "zz".__eq__)
    shop.cli("apply", code=1)
    assert (plain(shop, "repository"), plain(shop, "commit")) == (URL, "")


# --- a record that was lost
def lose_record(shop: CliShop, *also: str) -> None:
    for name in (ELSEWHERE.name, *also):
        shop.hands.delete(config_map(name))


def test_the_plan_of_a_run_whose_record_was_lost_is_all_that_it_does(shop: CliShop) -> None:
    """A recovery only finds what git doesn't declare and says so; the next plan shows that it goes, and the next run prunes it."""
    shop.cli("apply")
    lose_record(shop, "two")
    shop.declare("one", "two", *NAMES)
    shop.push()
    kept = "1 object that git doesn't declare is kept, for the state was missing"
    kept += ": anneal plan shop shows after this run what the next one prunes"
    assert f"note: {kept}" in shop.cli("plan", "--exit-code", code=2).stdout
    ended = shop.json("apply")
    assert ended["counts"] == {"created": 6, "unchanged": 2, "skipped": 1}
    assert actions(ended) == {"create": [*NAMES, "two"]}
    assert (ended["outcome"], ended["message"]) == ("applied", f"6 objects written; {kept}")
    assert shop.has("three")
    assert "- prune ConfigMap/shop/three" in shop.cli("plan", "--exit-code", code=2).stdout
    ended = shop.json("apply")
    assert (ended["counts"], ended["message"]) == ({"unchanged": 8, "pruned": 1}, "1 object pruned")
    assert not shop.has("three")
