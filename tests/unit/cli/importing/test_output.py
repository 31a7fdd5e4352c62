"""What a conversion prints: comments where they belong, each thing once, the same each time."""

from __future__ import annotations

from handler.cli.importing.output import document, facts
from tests.unit.cli.importing.custom_resources import app, converted, git, ks, read

WHOLE = (git(), ks("one", wait=True, force=True), ks("two", namePrefix="x-"), app())


def test_comments_stand_above_their_target_and_the_rest_at_the_end() -> None:
    lines = document(converted(*WHOLE), {"ConfigMap": 2, "Deployment": 1}).splitlines()
    assert lines[0] == "# anneal import: 3 targets from 4 objects; 2 fields not taken over; 1 target suspended"
    at = {name: lines.index(f"  - name: {name}") for name in ("one", "two", "web")}
    force = next(index for index, line in enumerate(lines) if "spec.force (in.yaml:2)" in line)
    build = next(index for index, line in enumerate(lines) if "spec.namePrefix (in.yaml:3)" in line)
    assert force < at["one"] < build < at["two"] < at["web"]
    assert lines[force].startswith("  # not taken over: Kustomization/flux-system/one spec.force (in.yaml:2): names no kinds")
    assert lines[build].endswith("; the target is suspended until that is settled")
    assert "  # set: path from Kustomization/flux-system/one spec.path (in.yaml:2)" in lines
    assert lines[-1] == "# left alone, as other manifests: 2 ConfigMap, 1 Deployment"


def test_a_reason_is_said_once() -> None:
    lines = document(converted(*WHOLE), {}).splitlines()
    reasons = [line for line in lines if line.startswith("# by itself: ")]
    assert len(reasons) == len(set(reasons))
    assert "#   Kustomization/flux-system/two spec.interval (in.yaml:3)" in lines


def test_the_same_input_is_printed_the_same_way_and_read_again() -> None:
    assert document(converted(*WHOLE), {}) == document(converted(*WHOLE), {})
    assert [each.suspend for each in read(converted(*WHOLE)).targets] == [False, True, False]


def test_all_of_it_as_json() -> None:
    found = facts(converted(*WHOLE), {"ConfigMap": 2})
    assert [each["name"] for each in found["targets"]] == ["one", "two", "web"]
    force = next(each for each in found["notTakenOver"] if each["field"] == "spec.force")
    assert (force["source"], force["place"], "suspends" in force) == ("Kustomization/flux-system/one", "in.yaml:2", False)
    assert {each["setting"] for each in found["set"]} >= {"path", "repository.url", "prune.enabled", "drift"}
    assert all(each["text"] for each in found["byItself"])
    assert found["leftAlone"] == {"ConfigMap": 2}
