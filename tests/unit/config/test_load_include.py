"""Included files add targets; each mistake in them has its own file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler.config.load import MAX_BYTES, load
from handler.config.settings import Settings
from handler.model.errors import ConfigInvalid

MAIN = """apiVersion: anneal.dev/v1alpha1
kind: Config
defaults: {namespaces: [shop], repository: {url: "https://git.example.com/shop.git"}}
include: [targets/*.yaml]
"""


def read(tmp_path: Path, files: dict[str, str | bytes], main: str = MAIN) -> Settings:
    (tmp_path / "targets").mkdir()
    (tmp_path / "anneal.yaml").write_text(main)
    for name, text in files.items():
        (tmp_path / "targets" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(tmp_path / "anneal.yaml")


def refused(tmp_path: Path, files: dict[str, str | bytes], main: str = MAIN) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        read(tmp_path, files, main)
    return str(caught.value).replace(f"{tmp_path}/", "").splitlines()


def test_every_shape_of_an_included_file_adds_its_targets_under_the_defaults(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"a.yaml": "targets: [{name: a}]", "b.yaml": "- {name: b}\n- {name: c}", "c.yaml": "name: d"}
    settings = read(tmp_path, files, MAIN + "targets: [{name: own}]")
    assert [target.name for target in settings.targets] == ["own", "a", "b", "c", "d"]
    assert {target.namespaces for target in settings.targets} == {("shop",)}


def test_a_file_that_two_globs_match_is_read_once(tmp_path: Path) -> None:
    main = MAIN.replace("targets/*.yaml", "targets/*.yaml, targets/a.yaml, '*.yaml'")
    assert [target.name for target in read(tmp_path, {"a.yaml": "name: a"}, main).targets] == ["a"]


def test_mistakes_of_every_file_come_together_with_their_own_places(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.yaml": "name: a\ndrfit: report",
        "b.yaml": "targets:\n  - name: a\ninterval: 5m",
        "c.yaml": "name: @",
    }
    assert refused(tmp_path, files, MAIN + "intervall: 5m\n") == [
        "anneal.yaml:5: intervall: unknown key; did you mean `interval`?",
        "targets/a.yaml:2: targets[a].drfit: unknown key; did you mean `drift`?",
        'targets/b.yaml:2: targets.name: "a" is taken, first at targets/a.yaml:1; names are unique',
        "targets/b.yaml:3: interval: an included file holds nothing beside `targets`; move it to the main file",
        (
            "targets/c.yaml:1: YAML: while scanning for the next token, found character that cannot start any token; "
            "quote a value that begins with one of * & ! % @ `"
        ),
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"d.yaml": "targets: none"}, "targets/d.yaml:1: targets: expected a list, found text"),
        ({"e.yaml": b"name: a\npath: \xff"}, "targets/e.yaml:2: configuration: expected UTF-8 text"),
        ({"f.yaml": b"#" * (MAX_BYTES + 1)}, f"targets/f.yaml:1: configuration: is larger than {MAX_BYTES} bytes"),
        ({"g.yaml": "just text"}, "targets/g.yaml:1: targets[0]: expected a mapping, found text"),
        ({"h.yaml": ""}, "targets/h.yaml:1: YAML: expected a mapping, found an empty file"),
        ({}, "anneal.yaml:4: include[targets/*.yaml]: expected files, found none; remove the glob or add a file"),
    ],
)
def test_a_mistake_in_an_included_file_has_its_place(tmp_path: Path, files: dict[str, str | bytes], expected: str) -> None:
    assert refused(tmp_path, files) == [expected]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("x.yaml", "anneal.yaml:4: include: expected a list, found text; write include: [x.yaml]"),
        ("[/etc/x.yaml]", 'anneal.yaml:4: include[0]: expected a glob relative to this file, found "/etc/x.yaml", which is absolute'),
        (
            "[a**.yaml]",
            'anneal.yaml:4: include[0]: expected a glob relative to this file, found "a**.yaml", which has `**` as only a part of a name',
        ),
        ("['']", 'anneal.yaml:4: include[0]: expected a glob relative to this file, found ""'),
    ],
)
def test_invalid_include_entries_are_refused(tmp_path: Path, include: str, expected: str) -> None:
    assert refused(tmp_path, {}, MAIN.replace("[targets/*.yaml]", include)) == [expected]


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"anneal\.yaml:1: configuration: can't be read: No such file or directory"):
        load(tmp_path / "anneal.yaml")
