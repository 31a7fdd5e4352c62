"""What a program may make, how its objects are called, and what is said of anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.render.jsonnet.jsonnet_output import OutputKey, OutputRollout, decode_output, encode_output

ROLLOUT = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "spec": {"groups": []}}
PLACE = "deploy/main.jsonnet"


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


A, B, C = config("a"), config("b"), config("c")


def read(made: Any, *, given: bool = False) -> list[Any]:
    return [decode_output(frame) for frame in encode_output(json.dumps(made).encode(), PLACE, given=given)]


def shown(made: Any) -> list[str]:
    """Keys, and the names and places of objects, in their order."""
    rows = read(made)
    return [row.text if isinstance(row, OutputKey) else f"{row.identity.name} {row.place.partition(':')[2]}" for row in rows]


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (A, ["a $"]),
        ([A, None, [B]], ["a $[0]", "b $[2][0]"]),
        ({"apiVersion": "v1", "kind": "List", "items": [A, B]}, ["a $", "b $"]),
        ({"objects": {"x/a.json": A, "b": B, "c": None}}, ["x/a.json", 'a $.objects["x/a.json"]', "b", "b $.objects.b"]),
        ({"objects": {"b": B}, "rollout": None}, ["b", "b $.objects.b"]),
        (
            {"web": {"a": A, "more": [B, C]}, "no": None},
            ["web/a", "a $.web.a", "web/more/0", "b $.web.more[0]", "web/more/1", "c $.web.more[1]"],
        ),
        (
            {"setup/0a": A, "l": {"kind": "List", "apiVersion": "v1", "items": [B, C]}},
            ["setup/0a", 'a $["setup/0a"]', "l", "b $.l", "c $.l"],
        ),
        ({"objects": {"a": A}, "more": B}, ["objects/a", "a $.objects.a", "more", "b $.more"]),
        ({"kind": {"a": A}}, ["kind/a", "a $.kind.a"]),
        ({}, []),
        (None, []),
    ],
)
def test_objects_are_found_with_their_keys_and_places(made: Any, wanted: list[str]) -> None:
    assert shown(made) == wanted


def test_a_rollout_is_taken_from_the_output_unless_the_target_names_one() -> None:
    made = {"objects": {"a": A}, "rollout": ROLLOUT}
    rollout = read(made)[-1]
    assert isinstance(rollout, OutputRollout)
    assert (rollout.document.place, rollout.document.body()) == (f"{PLACE}:$.rollout", {**ROLLOUT, "metadata": {}})
    problem = read(made, given=True)[-1]
    assert (problem.subject, problem.message) == ("$.rollout", "is a second Rollout: the target names a file of one")
    wrong = read({"objects": {}, "rollout": {"kind": "Roll"}})[-1]
    assert (wrong.subject, wrong.message, wrong.place) == ("$.rollout kind", "is Roll, not Rollout", f"{PLACE}:$.rollout")


@pytest.mark.parametrize(
    ("made", "subject", "seen"),
    [
        ("text", "$", "is text, where"),
        ({"grafana": {"port": 3}}, "$.grafana.port", "is a number, where"),
        ([A, [True]], "$[1][0]", "is true or false, where"),
        ({"a": {"kind": "ConfigMap", "metadata": {"name": "a"}}}, "ConfigMap/a", "apiVersion is missing"),
        ({"a": A, "b": A}, "ConfigMap/a", f"declared twice, first at {PLACE}:$.a"),
        ({"objects": 3}, "$.objects", "is a number, where"),
    ],
)
def test_anything_else_is_a_mistake_with_its_path(made: Any, subject: str, seen: str) -> None:
    (problem,) = [row for row in read(made) if isinstance(row, Problem)]
    assert problem.subject == subject
    assert problem.message.startswith(seen)
    assert problem.place.startswith(PLACE)
    assert ".annealignore" not in problem.fix


def test_an_environment_of_tanka_names_the_way_to_its_objects() -> None:
    (problem,) = read({"apiVersion": "tanka.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "prod"}, "data": {"a": A}})
    assert isinstance(problem, Problem)
    assert "is an environment of Tanka" in problem.message
    assert "(import 'main.jsonnet').data" in problem.fix


@pytest.mark.parametrize(("depth", "refused"), [(190, 0), (210, 1), (5_000, 1)])
def test_what_is_nested_too_deep_is_refused(depth: int, refused: int) -> None:
    text = "".join(f"{' ' * 3 * level}[\n" for level in range(depth)) + "]" * depth
    found = [decode_output(frame) for frame in encode_output(text.encode(), PLACE, given=False)]
    assert ["nested deeper" in row.message for row in found if isinstance(row, Problem)] == [True] * refused


def test_half_a_surrogate_pair_is_refused() -> None:
    (problem,) = [decode_output(frame) for frame in encode_output(b'["\\ud83d"]', PLACE, given=False)]
    assert isinstance(problem, Problem)
    assert "surrogate" in problem.message


def test_the_wire_is_read_strictly() -> None:
    (manifest,) = read(A)
    assert isinstance(manifest, Manifest)
    for wrong in (b"K3", b"K{", b"RX", b"X", b""):
        with pytest.raises(ValueError, match=r"."):
            decode_output(wrong)
