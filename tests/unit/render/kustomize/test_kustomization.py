"""What a kustomization names: every field, in any case, with its line; plugins; the copy that is built."""

from __future__ import annotations

import json

import pytest

from handler.model.errors import Problem
from handler.render.kustomize import kustomization
from handler.render.kustomize.kustomization import MARK, Mentions, decode_mentions, encode_mentions, plugins, read, standing_objects


def reading(text: str, *, root: bool = False) -> Mentions:
    (found,) = [row for row in read(text.encode(), "k.yaml", root=root) if isinstance(row, Mentions)]
    return found


def named(text: str) -> list[tuple[str, str, int]]:
    return [(each.field, each.text, each.line) for each in reading(text).references if each.sort != MARK]


def problems(text: str) -> list[Problem]:
    return [row for row in read(text.encode(), "k.yaml") if isinstance(row, Problem)]


def test_entries_have_their_lines_wherever_they_stand() -> None:
    assert named("resources:\n- a\n- b\nbases: [c,\n  d]\n") == [
        ("resources", "a", 2),
        ("resources", "b", 3),
        ("bases", "c", 4),
        ("bases", "d", 5),
    ]
    assert named('{"resources": ["a"]}') == [("resources", "a", 1)]
    assert named("x: &l [a]\nresources: *l\n") == [("resources", "a", 1)]


@pytest.mark.parametrize("key", ["Resources", "RESOURCES", "re\u017fources"])
def test_keys_are_matched_as_gos_decoder_matches_them(key: str) -> None:
    assert named(f"{key}: [a]\n") == [("resources", "a", 1)]
    assert named(f"{key}: [a]\nresources: [b]\n") == [("resources", "a", 1), ("resources", "b", 2)]


def test_generators_files_may_follow_a_key() -> None:
    text = "configMapGenerator:\n- files: [a.txt, key=b.txt]\n  envs: [c.env]\n  env: d.env\n"
    assert [each[1] for each in named(text)] == ["a.txt", "b.txt", "c.env", "d.env"]


def test_texts_in_place_of_files_name_nothing_themselves() -> None:
    text = "patchesStrategicMerge:\n- |-\n  kind: A\n- '{kind: B}'\n- p.yaml\npatches:\n- patch: 'a: b'\n"
    assert named(text) == [("patchesStrategicMerge", "p.yaml", 5)]
    inline = "generators:\n- |-\n  apiVersion: builtin\n  kind: SecretGenerator\n  files: [s.txt]\n"
    assert named(inline) == [("SecretGenerator.files", "s.txt", 2)]


@pytest.mark.parametrize(
    ("text", "seen"), [("a", "isn't a mapping"), ("", "is empty"), ("null", "is empty"), ("a: [", "YAML"), ("\xff", "")]
)
def test_what_is_no_kustomization_is_a_mistake(text: str, seen: str) -> None:
    data = text.encode("latin-1")
    (found,) = [row for row in read(data, "k.yaml") if isinstance(row, Problem)]
    assert seen in f"{found.subject} {found.message}"
    assert found.place.startswith("k.yaml:")


def test_charts_are_read_in_both_forms() -> None:
    text = (
        "helmGlobals: {chartHome: ../charts}\nhelmCharts:\n- {name: a, version: '1', repo: r, kubeVersion: '1.30'}\n"
        "helmChartInflationGenerator:\n- {chartName: b, chartVersion: '2', chartRepoUrl: q, chartHome: h}\n"
    )
    one, other = reading(text).charts
    assert (one.name, one.version, one.repo, one.home, one.kube_version, one.api_versions) == ("a", "1", "r", "../charts", True, False)
    assert (other.name, other.version, other.repo, other.home, other.line) == ("b", "2", "q", "h", 5)
    assert [each.subject for each in problems("helmGlobals: {configHome: x}\n")] == ["helmGlobals.configHome"]


def test_a_plugin_that_isnt_built_in_is_a_mistake_with_its_line() -> None:
    text = b"# one\napiVersion: builtin\nkind: PatchTransformer\npath: p.yaml\n---\napiVersion: a/v1\nkind: B\n"
    rows = list(plugins(text, "t.yaml"))
    assert [(row.subject, row.place) for row in rows if isinstance(row, Problem)] == [("B", "t.yaml:6")]
    (found,) = [row for row in rows if isinstance(row, Mentions)]
    assert [(each.field, each.text, each.line) for each in found.references] == [("PatchTransformer.path", "p.yaml", 4)]


def test_the_copy_that_is_built_notes_origins_and_is_else_the_same() -> None:
    assert json.loads(reading("resources: [a]\nnamePrefix: x\n", root=True).noted) == {
        "resources": ["a"],
        "namePrefix": "x",
        "buildMetadata": ["originAnnotations"],
    }
    assert json.loads(reading("BuildMetadata: [managedByLabel]\n", root=True).noted) == {
        "BuildMetadata": ["managedByLabel", "originAnnotations"]
    }


@pytest.mark.parametrize(
    "text", ["{}", "kind: Kustomization", "namePrefix: ''\nresources: null", "buildMetadata: x", "buildMetadata: [originAnnotations]"]
)
def test_what_kustomize_refuses_or_notes_already_is_built_as_it_is(text: str) -> None:
    assert reading(text, root=True).noted == ""


def test_objects_are_found_by_looks() -> None:
    text = (
        "# first\napiVersion: v1\nkind: A\nmetadata:\n  labels:\n    name: not\n  name: one\nspec: {name: no}\n---\n"
        "kind: \"B\"\nmetadata: {labels: {x: y}, name: 'two'}\n---\njust: text\n---\n# c\n\nmetadata:\n  name: three\nkind: C\n"
    )
    assert dict(standing_objects(text.encode(), "f").objects) == {"A/one": 2, "B/two": 10, "C/three": 17}


def test_what_the_child_says_is_read_strictly() -> None:
    found = reading("resources: [a]\nhelmCharts: [{name: c}]\n", root=True)
    frame = encode_mentions(3, found)
    assert frame.startswith(b"K3 {")
    assert decode_mentions(frame.partition(b" ")[2]) == found
    for wrong in (b"{}", b'{"path": 1, "references": [], "charts": [], "objects": [], "noted": ""}', b"[]"):
        with pytest.raises((KeyError, TypeError, ValueError)):
            decode_mentions(wrong)
    assert kustomization.BUILD_METADATA == "buildMetadata"
