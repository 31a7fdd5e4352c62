"""`dependsOn` names other targets, each once, and no circle: every entry of a circle is named with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.config.load import load, parse
from handler.config.target_order import note_mistakes
from handler.config.yaml_nodes import ConfigMistakes, compose
from handler.model.errors import ConfigInvalid
from tests.unit.config.config_mistakes import HEAD, mistakes
from tests.unit.rows import each_row


def refused(tmp_path: Path, files: dict[str, str], more: str = "") -> list[str]:
    """Return the mistakes of a configuration of these files."""
    main = 'apiVersion: anneal.dev/v1alpha1\nkind: Config\ninclude: ["*.part"]\n'
    common = '{namespaces: [shop], repository: {url: "https://git.example.com/shop.git"}'
    (tmp_path / "anneal.yaml").write_text(f"{main}defaults: {common}{more}}}\n")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        load(tmp_path / "anneal.yaml")
    return str(caught.value).replace(f"{tmp_path}/", "").splitlines()


def targets(**waits: list[str]) -> str:
    """Return a configuration of these targets, a line each, and of what each waits for, a line an entry."""
    lines = [HEAD + "targets:"]
    for name, names in waits.items():
        lines.append(f"  - {{name: {name}, repository: {{url: 'https://git.example.com/{name}.git'}}, namespaces: [shop], dependsOn: [")
        lines += [f"      {each}," for each in names]
        lines.append("    ]}")
    return "\n".join(lines) + "\n"


def test_targets_may_wait_for_others_in_any_order_of_the_file() -> None:
    settings = parse(targets(apps=["infra", "dns"], infra=["dns"], dns=[]))
    assert [target.depends_on for target in settings.targets] == [("infra", "dns"), ("dns",), ()]


@each_row(
    ("waits", "line"),
    [
        ({"a": ["a"]}, "a.yaml:5: targets[a].dependsOn: a waits for itself; remove the entry"),
        ({"a": ["b", "b"], "b": []}, "a.yaml:6: targets[a].dependsOn: b is written twice, first at a.yaml:5; remove the entry"),
        (
            {"apps": ["infa"], "dns": []},
            'a.yaml:5: targets[apps].dependsOn[0]: expected the name of a target, found "infa", which isn\'t known here; known: apps, dns',
        ),
        (
            {"apps": ["sh*p"], "shop": []},
            'a.yaml:5: targets[apps].dependsOn[0]: expected the name of a target, found "sh*p"',
        ),
    ],
)
def test_a_mistake_is_named_where_it_stands(waits: dict[str, list[str]], line: str) -> None:
    assert mistakes(targets(**waits)) == [line]


def test_a_circle_is_named_whole_and_once_with_the_line_of_each_entry() -> None:
    (line,) = mistakes(targets(a=["x", "b"], b=["c"], c=["a", "x"], x=[]))
    assert line.startswith("a.yaml:6: targets[a].dependsOn: targets wait for each other in a circle: ")
    assert line.endswith("a waits for b (a.yaml:6), b waits for c (a.yaml:9), c waits for a (a.yaml:12); remove one of these entries")


def test_each_circle_is_named(tmp_path: Path) -> None:
    found = mistakes(targets(a=["b"], b=["a", "c"], c=["b"]))
    assert len(found) == 2
    assert all("in a circle" in line for line in found)


def test_a_circle_over_files_names_both(tmp_path: Path) -> None:
    (line,) = refused(tmp_path, {"a.part": "name: a\ndependsOn: [b]", "b.part": "name: b\ndependsOn:\n  - a"})
    assert "a waits for b (a.part:2), b waits for a (b.part:3)" in line


def test_defaults_may_hold_it_but_not_for_the_target_that_they_name(tmp_path: Path) -> None:
    (line,) = refused(tmp_path, {"a.part": "- {name: infra}\n- {name: apps}"}, ", dependsOn: [infra]")
    assert line.endswith("targets[infra].dependsOn: infra waits for itself; remove the entry")


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef")), min_size=1))
def test_what_is_noted_is_exactly_what_keeps_targets_from_an_order(waits: dict[str, set[str]]) -> None:
    known = {name: sorted(names & waits.keys()) for name, names in waits.items()}
    noted = ConfigMistakes("a.yaml")
    note_mistakes({name: compose(f"[{', '.join(names)}]", f"{name}.yaml").value for name, names in known.items()}, noted)
    left, done = {name: set(names) for name, names in known.items()}, set[str]()
    while ready := {name for name, names in left.items() if names <= done}:
        done |= ready
        left = {name: names for name, names in left.items() if name not in ready}
    assert bool(noted.found) == bool(left)
    if noted.found:
        with pytest.raises(ConfigInvalid):
            noted.settle()
