"""What is applied can be read by kubectl alone; records of the format before are read and written anew."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import StateInvalid
from handler.model.names import Identity
from handler.state.configmap import decode, encode
from handler.state.record import FORMAT, Attempt, Progress, Ran, State, StepRecord, TargetHealth
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import API, NAMESPACE, NOON, TOKEN, TOOLING, as_format_1, blank, full, sha

Body = dict[str, Any]


def read(body: Body) -> State:
    return decode(body, NAMESPACE, "shop", TOOLING)


def test_commit_repository_and_path_are_plain_keys_of_the_config_map() -> None:
    data = encode(full(), NAMESPACE, TOOLING)["data"]
    assert (data["commit"], data["repository"], data["path"]) == (sha(), "https://git.example.com/acme/shop.git", "deploy")
    groups = json.loads(data["applied.json"]) | json.loads(data["target.json"])
    assert (groups.get("commit"), groups["repository"], groups.get("path")) == (None, "", None)


def test_nothing_that_is_not_recorded_has_a_key() -> None:
    body = encode(replace(blank(), repository=""), NAMESPACE, TOOLING)
    assert list(body["data"]) == ["target.json"]
    assert read(body) == replace(blank(), repository="")


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


def test_a_repository_in_both_places_is_not_believed() -> None:
    body = encode(full(), NAMESPACE, TOOLING)
    target = json.loads(body["data"]["target.json"]) | {"repository": "https://git.example.com/other.git"}
    body["data"]["target.json"] = json.dumps(target)
    with pytest.raises(StateInvalid, match="repository stands in another key, too"):
        read(body)
