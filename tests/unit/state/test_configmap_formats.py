"""What is applied can be read by kubectl alone; records of the format before are read and written anew; how long one may be in all."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handler.model.errors import StateInvalid
from handler.model.names import Identity
from handler.state.cluster_port import Body
from handler.state.configmap import decode, encode
from handler.state.record import FORMAT, Attempt, Progress, Ran, State, StepRecord, Suspend, TargetHealth
from handler.state.record_format import gzipped_text
from handler.state.store import StateStore, fitted
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import API, NAMESPACE, NOON, TOKEN, TOOLING, as_format_1, blank, full, sha


def read(body: Body) -> State:
    return decode(body, NAMESPACE, "shop", TOOLING)


def test_commit_repository_and_path_are_plain_keys_of_the_config_map() -> None:
    data = encode(full(), NAMESPACE, TOOLING)["data"]
    assert (data["commit"], data["repository"], data["path"]) == (sha(), "https://git.example.com/acme/shop.git", "deploy")
    groups = json.loads(data["applied.json"]) | json.loads(data["target.json"])
    assert (groups.get("commit"), groups["repository"], groups.get("path")) == (None, "", None)


def test_a_record_of_the_format_before_is_read_and_written_anew_with_plain_keys() -> None:
    state = replace(full(), path="", health=TargetHealth())
    found = read(as_format_1(encode(state, NAMESPACE, TOOLING)))
    assert found == state
    assert encode(found, NAMESPACE, TOOLING) == encode(state, NAMESPACE, TOOLING)
    assert json.loads(encode(found, NAMESPACE, TOOLING)["data"]["target.json"])["format"] == FORMAT


def test_a_record_of_the_format_before_is_written_anew_when_its_summary_is_brought_up_to_date() -> None:
    objects = FakeObjects()
    body = as_format_1(encode(blank(commit=sha()), NAMESPACE, TOOLING))
    objects.create(body)
    store = StateStore(objects, NAMESPACE, "shop", "default", TOOLING)
    stored = store.read()
    assert stored.state is not None
    assert store.swap(stored, stored.state) is not stored
    written = objects.get("ConfigMap", NAMESPACE, "anneal-shop")
    assert written is not None
    assert (written["data"]["commit"], json.loads(written["data"]["target.json"])["format"]) == (sha(), FORMAT)


def test_a_record_of_the_format_before_knows_the_jobs_that_its_commit_declared_and_a_step_came_to() -> None:
    brief, skipped = Identity("batch", "Job", "shop", "brief"), Identity("batch", "Job", "shop", "skipped")
    steps = (
        StepRecord("main", "brief", str(brief), "CreateOrUpdate", outcome="done"),
        StepRecord("main", "skipped", str(skipped), "Recreate"),
    )
    rollout = Progress(sha(), "d" * 64, NOON, steps=steps)
    state = blank(commit=sha(), digest="d" * 64, rollout=rollout, declared=(API, brief, skipped))
    found = read(as_format_1(encode(state, NAMESPACE, TOOLING)))
    assert found.ran == (Ran(brief),)
    assert read(encode(found, NAMESPACE, TOOLING)).ran == (Ran(brief),), "whatever writes it anew keeps that"
    assert read(encode(state, NAMESPACE, TOOLING)).ran == (), "a record of this format notes them itself"
    begun = blank(declared=(brief,), attempt=Attempt(sha(), "b" * 64, "c" * 64, TOKEN, NOON))
    assert read(as_format_1(encode(begun, NAMESPACE, TOOLING))).ran == (), "nothing was applied whole"


def test_an_older_version_names_the_record_format_as_newer() -> None:
    """It reads the format first, for its way out deletes nothing; so the part that holds that must be readable to format 1."""
    for state in (full(), replace(blank(), repository="")):
        body = encode(state, NAMESPACE, TOOLING)
        target = json.loads(body["data"]["target.json"])
        assert target.keys() == {"target", "installation", "clusterUid", "repository", "format"}, "what format 1 asks for, and no more"
        body["data"] |= {"target.json": json.dumps(target | {"format": FORMAT + 1}), "another": "key"}
        with pytest.raises(StateInvalid) as caught:
            read(body)
        assert "written by a newer Anneal" in str(caught.value)
        assert "delete" not in str(caught.value)


@pytest.mark.parametrize("ending", ["", "x"])
def test_all_parts_of_a_record_share_one_limit_of_length(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr("handler.state.configmap.INFLATED", 10_000)
    body = encode(full(), NAMESPACE, TOOLING)
    body["data"] = {key: text for key, text in body["data"].items() if key in ("repository", "target.json")}
    text = gzipped_text(b"[" + b" " * 6_000 + b"]")
    body["binaryData"] = {f"{key}.json.gz": text for key in ("declared", "drift")} | {"x.json.gz": ending}
    with pytest.raises(StateInvalid, match=r"declared\.json\.gz`: is too large") as caught:
        read(body)
    assert "target.json`" not in str(caught.value), "a newer version's record is known by that"


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "3000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_a_time_so_far_away_that_no_one_can_reckon_with_it_is_refused(text: str) -> None:
    body = encode(blank(suspend=Suspend("x", until="2999-12-31T23:59:59Z")), NAMESPACE, TOOLING)
    assert read(body).suspend
    body["data"]["suspend.json"] = json.dumps({"by": "x", "until": text})
    with pytest.raises(StateInvalid, match="expected a time"):
        read(body)


def test_a_record_of_too_much_text_is_trimmed_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.state.store.INFLATED", 20_000)
    steps = tuple(StepRecord("apply", "all", f"ConfigMap/shop/{number}", "apply", message="x" * 1_000) for number in range(30))
    kept = fitted(blank(rollout=Progress(sha(), sha(), "2026-01-01T00:00:00Z", steps=steps)), NAMESPACE, TOOLING)[0].rollout
    assert kept
    assert len(kept.steps) == 30
