"""`-f`: directories, files and standard input, the same in every command that takes them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.unit.cli.in_memory_cli import CliShop, document
from tests.unit.engine.in_memory_shop import Body

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
    """No configuration is there."""
    made = CliShop.of(tmp_path, monkeypatch)
    made.config.unlink()
    return made


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory outside of any repository, with two objects, and a third one in a file that is none of a directory's."""
    made = tmp_path / "plain"
    made.mkdir()
    (made / "a.yaml").write_text(document("ConfigMap", "a", data={"v": "1"}))
    (made / "b.txt").write_text(document("ConfigMap", "b"))
    (made / "role.yaml").write_text(document("Service", "web", spec={"selector": {"app": "front"}}))
    return made


def flags(*given: str | Path, space: str = "shop") -> tuple[str, ...]:
    named = [word for each in given for word in ("-f", str(each))]
    return (*named, "--name", "local", "-n", space, "--state-namespace", "shop")


def allowing(text: str) -> list[str]:
    """Return the command that a held run prints."""
    return shlex.split(text.rpartition("allow exactly that: ")[2].splitlines()[0])[1:]


def test_every_command_takes_a_directory_with_the_same_flags(shop: CliShop, files: Path) -> None:
    same = flags(files)
    planned = shop.json("plan", *same)["stages"]
    assert [change["object"] for stage in planned for change in stage] == ["ConfigMap/shop/a", "Service/shop/web"]
    assert "name: a" in shop.cli("render", *same).stdout
    first, second = shop.json("apply", *same), shop.json("apply", *same)
    assert (first["commit"], second["outcome"]) == (second["commit"], "unchanged"), "a directory without a repository has a name too"
    assert shop.cli("plan", *same, "--exit-code").stdout.endswith("2 unchanged\n")
    assert shop.cli("status", *same).stdout.startswith("local: applied")
    assert shop.json("history", *same)["runs"][0]["outcome"] == "applied"
    (files / "a.yaml").unlink()
    assert "1 to prune" not in shop.cli("plan", *same).stdout, "apply -f wouldn't, either"
    assert "- prune ConfigMap/shop/a" in shop.cli("plan", *same, "--prune").stdout
    assert shop.json("apply", *same)["counts"] == {"unchanged": 1, "skipped": 1}
    assert "ConfigMap/shop/a pruned" in shop.cli("prune", *same).stdout
    assert not shop.has("a")
    record = ("--name", "local", "--state-namespace", "shop")
    assert shop.cli("status", *record).stdout.startswith("local: applied"), "the record's name alone will do"
    assert len(shop.json("history", *record)["runs"]) == 3


def test_files_are_named_one_by_one_whatever_they_end_in(shop: CliShop, files: Path) -> None:
    shop.cli("apply", *flags(files / "b.txt", files / "a.yaml"))
    assert (shop.has("a"), shop.has("b"), shop.has("web", "Service")) == (True, True, False)
    told = shop.cli("apply", *flags(files / "c.yaml"), code=1)
    assert "c.yaml: can't be read: No such file or directory" in told.stderr


def test_standard_input_is_applied_as_a_file_is(shop: CliShop, files: Path) -> None:
    piped = flags("-")
    both = "---\n".join((files / name).read_text() + "\n" for name in ("a.yaml", "b.txt"))
    assert "2 created" in shop.cli("apply", *piped, "-y", stdin=both).stdout
    assert shop.has("b")
    assert "2 unchanged" in shop.cli("apply", *piped, "-y", stdin=both).stdout
    as_json = "".join((files / name).read_text() for name in ("a.yaml", "b.txt"))  # as `jq` and `kubectl get -o json` print them
    assert "2 unchanged" in shop.cli("apply", *piped, "-y", stdin=as_json).stdout
    bad = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {v: 1}\n"
    assert "standard input:2: " in shop.cli("apply", *piped, "-y", stdin=bad, code=1).stderr
    assert "standard input:2: file: isn't UTF-8" in shop.cli("plan", *piped, stdin=b"# a\n\xff\n", code=1).stderr


def test_a_pipe_that_brings_nothing_prunes_nothing(shop: CliShop, files: Path) -> None:
    shop.cli("apply", *flags(files))
    for given, told in (
        ("", "standard input: is empty, so nothing was changed\n    see what the command before the pipe says"),
        (" \n\n", "standard input: is empty"),
        ("---\n# nothing\n", "the render declares no object (2 live members would go)\n    name files that declare something"),
        ("#" * 10_000_001, "standard input: is larger than 10,000,000 bytes"),
    ):
        assert told in shop.cli("apply", *flags("-"), "--prune", "-y", stdin=given, code=1).stderr
    assert shop.has("a")


def test_standard_input_without_a_terminal_needs_the_yes_flag_and_names_the_command(shop: CliShop, files: Path) -> None:
    told = shop.cli("apply", *flags("-"), "--prune", stdin=(files / "a.yaml").read_text(), code=64).stderr
    command = shlex.join(("anneal", "apply", *flags("-"), "-y", "--prune"))
    assert f"there is no terminal to ask on, so it needs -y: … | {command}" in " ".join(told.split())


def test_missing_whitelist_entries_are_one_command_at_the_end_that_works(shop: CliShop, files: Path) -> None:
    (files / "ns.yaml").write_text(document("Namespace", "other"))
    volume: Body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}}
    there = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "other"}} for name in "cde"]
    (files / "there.json").write_text("\n".join(map(json.dumps, (volume, *there))))
    told = shop.cli("apply", *flags(files), code=1).stderr.splitlines()
    assert told[:-1] == [
        "ns.yaml:1: Namespace/other and 3 more: namespace other is not in the target's whitelist",
        "there.json:1: PersistentVolume/disk: PersistentVolume is cluster-scoped and not allowed here",
        "target local: 5 objects need what it doesn't allow",
    ]
    assert "7 created" in shop.cli(*shlex.split(told[-1])[1:]).stdout
    assert all(shop.hands.live(each) for each in there)


def test_apply_tells_which_fields_it_changes_as_plan_does(shop: CliShop, files: Path) -> None:
    shop.cli("apply", *flags(files))
    (files / "role.yaml").write_text(document("Service", "web", spec={"ports": [{"port": 80}]}))
    planned = [line for line in shop.cli("plan", *flags(files)).stdout.splitlines() if line.startswith("    ")]
    assert any(line.startswith("    - spec.selector") for line in planned)
    lines = shop.cli("apply", *flags(files)).stdout.splitlines()
    assert lines[: len(planned) + 1] == ["Service/shop/web configured", *planned]


def test_held_deletions_of_files_are_approved_by_the_command_that_each_prints(shop: CliShop, files: Path) -> None:
    """A plan, a pruning's plan, a pruning and an apply hold the same; what they print is typed as it stands."""
    going = [files / f"going-{number}.yaml" for number in range(12)]
    for each in going:
        each.write_text(document("ConfigMap", each.stem))
    same = flags(files)
    shop.cli("apply", *same)
    for each in going:
        each.unlink()
    held = (("plan", "--prune"), 0), (("prune", "--dry-run"), 0), (("prune",), 3), (("apply", "--prune"), 3)
    first, *others = (allowing(shop.cli(*arguments, *same, code=code).stdout) for arguments, code in held)
    assert others == [first] * 3
    assert "12 pruned" in shop.cli(*first).stdout
    assert not shop.has("going-3")
