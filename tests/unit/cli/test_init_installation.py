"""The name that `anneal init` writes: new in each new file, that of the file which it replaces in that."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from handler.cli.group import anneal
from handler.config.load import load

URL = "https://git.example.com/acme/shop.git"
FLAGS = ("--repository", URL, "-n", "shop", "--path", "")


def written(path: Path, *flags: str) -> bool:
    return CliRunner(env={"ANNEAL_CONFIG": None, "HOME": "/nonexistent"}).invoke(anneal, ["init", "-c", str(path), *flags]).exit_code == 0


def test_each_new_configuration_gets_a_name_of_its_own(tmp_path: Path) -> None:
    long = f"https://git.example.com/acme/{'x' * 80}.git"
    names = {each: tmp_path / f"{each}.yaml" for each in "abc"}
    for each, url in zip(names.values(), (URL, URL, long), strict=True):
        assert written(each, "--repository", url, *FLAGS[2:])
    found = [load(each) for each in names.values()]
    assert len({each.installation for each in found}) == 3
    assert not any(each.is_shared or each.installation_from for each in found)


@pytest.mark.parametrize(
    ("before", "kept", "taken"), [("installation: blue\ninstallationFrom: green\n", "blue", "green"), ("", "", "default"), ("a: [", "", "")]
)
def test_what_the_file_before_has_deployed_stays_this_configurations(tmp_path: Path, before: str, kept: str, taken: str) -> None:
    path = tmp_path / "anneal.yaml"
    assert written(path, *FLAGS)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("installation:")]
    path.write_text(before + "\n".join(lines))
    assert written(path, *FLAGS, "--force")
    found = load(path)
    assert (not kept or found.installation == kept, found.is_shared, found.installation_from) == (True, False, taken)
