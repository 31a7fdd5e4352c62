"""Bitbucket Cloud and Data Center deliveries: lists of refs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.errors import BadPayload, BadSignature
from handler.model.event import RefChange
from tests.fakes.host_webhooks import COMMIT, KEYS, MAIN, PUSHES, SAMPLES, hexadecimal, read

CENTER = next(sample for sample in SAMPLES if sample.name == "center-refs_changed")


def cloud(*changes: Any, **repository: Any) -> bytes:
    document = PUSHES["bitbucket"].document
    document["push"]["changes"] = list(changes) or document["push"]["changes"]
    document["repository"] |= repository
    return json.dumps(document).encode()


def center(*changes: Any, **repository: Any) -> bytes:
    document = CENTER.document
    document["changes"] = list(changes) or document["changes"]
    document["repository"] |= repository
    return json.dumps(document).encode()


def test_the_hook_uuid_is_no_signature() -> None:
    with pytest.raises(BadSignature):
        read("bitbucket", CENTER.body, {"X-Hook-UUID": KEYS["BITBUCKET"], "X-Event-Key": "repo:push"})


def test_data_centers_unsigned_test_is_refused_and_a_signed_one_is_a_ping() -> None:
    body = b'{"test": true}'
    with pytest.raises(BadSignature):
        read("bitbucket", body, {"X-Event-Key": "diagnostics:ping"})
    signed = {"X-Event-Key": "diagnostics:ping", "X-Hub-Signature": f"sha256={hexadecimal(body, KEYS['BITBUCKET'])}"}
    assert read("bitbucket", body, signed).kind == "ping"


def test_data_center_names_its_request_in_another_header() -> None:
    signed = {"X-Event-Key": "repo:refs_changed", "X-Hub-Signature": f"sha256={hexadecimal(CENTER.body, KEYS['BITBUCKET'])}"}
    assert read("bitbucket", CENTER.body, signed | {"X-Request-Id": "r-7"}).delivery == "r-7"


def test_cloud_names_its_page_or_its_path() -> None:
    assert read("bitbucket", cloud(), event="repo:push").urls == ("https://git.example.com/acme/shop",)
    assert read("bitbucket", cloud(links=None), event="repo:push").urls == ("https://bitbucket.org/acme/shop",)


def test_data_center_names_what_to_clone() -> None:
    assert read("bitbucket", center(), event="repo:refs_changed").urls == (
        "https://git.example.com/scm/acme/shop.git",
        "ssh://git@git.example.com:7999/acme/shop.git",
    )
    with pytest.raises(BadPayload, match="names no repository"):
        read("bitbucket", center(links={"clone": []}), event="repo:refs_changed")


def test_a_ref_of_a_type_that_is_not_known_may_be_any() -> None:
    side = {"type": "named_branch", "name": "default", "target": {"hash": COMMIT}}
    main = {"new": {"type": "branch", "name": "main", "target": {"hash": COMMIT}}}
    for sent, changes in (([{"new": side}, main], (MAIN,)), ([{"new": side}], ()), ([{"new": None, "old": side}], ())):
        found = read("bitbucket", cloud(*sent), event="repo:push")
        assert (found.kind, found.changes, found.more) == ("push", changes, True)
    assert not read("bitbucket", cloud(main), event="repo:push").more


def test_a_zero_hash_is_a_deleted_branch_whatever_the_type() -> None:
    found = read("bitbucket", center({"ref": {"id": "refs/heads/old"}, "toHash": "0" * 40}), event="repo:refs_changed")
    assert found.changes == (RefChange("refs/heads/old", deleted=True),)


def test_the_name_of_the_actor_is_found_wherever_it_is() -> None:
    document = CENTER.document
    for actor, name in (({"display_name": "Ada"}, "Ada"), ({"displayName": "Ada L."}, "Ada L."), ({}, ""), (None, "")):
        body = json.dumps(document | {"actor": actor}).encode()
        assert read("bitbucket", body, event="repo:refs_changed").actor == name


@pytest.mark.parametrize(
    "change",
    [
        {"new": []},
        {"new": {"type": "branch"}},
        {"new": {"type": "branch", "name": "a b"}},
        {"new": {"type": "branch", "name": "main", "target": {"hash": "xyz"}}},
        {"new": {"type": 1}},
        "main",
        None,
    ],
)
def test_a_change_of_another_shape_is_refused(change: object) -> None:
    with pytest.raises(BadPayload):
        read("bitbucket", cloud(change), event="repo:push")


@pytest.mark.parametrize("change", [{}, {"ref": None}, {"ref": {"id": "main"}}, {"ref": {"id": "refs/heads/x"}, "toHash": 1}, [], 0])
def test_a_ref_of_another_shape_is_refused(change: object) -> None:
    with pytest.raises(BadPayload):
        read("bitbucket", center(change), event="repo:refs_changed")
