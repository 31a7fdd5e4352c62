"""What stands in a package beside the code, and how it is written."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from handler.model.errors import ConfigInvalid
from infra.functions import archive
from infra.functions.package import together
from tests.unit.rows import each_row

CODE = {"handler/functions.py": Path("a"), "six.py": Path("b")}


@each_row("name", ["handler/trust.pem", "six.py/trust.pem", "six/trust.pem"])
def test_no_file_of_the_configuration_takes_the_place_of_code(name: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"{name}: is the name of code"):
        together(CODE, {name: Path("c")})


@each_row("name", ["json.py", "sitecustomize.py", "lambda_function.PY", "trust/ca.pyc", "_ssl.abi3.so"])
def test_no_file_of_the_configuration_is_imported(name: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"{name}: would be imported"):
        together(CODE, {name: Path("c")})


def test_an_archive_follows_from_what_is_in_it_alone(tmp_path: Path) -> None:
    """Not from the order in which files were found, nor from their times and modes; what stood there before is replaced.

    What is a program is said by name.
    """
    written = []
    for number, order in enumerate((["b", "a"], ["a", "b"])):
        files = {}
        for name in order:
            files[name] = tmp_path / f"{number}-{name}"
            files[name].write_text(f"content of {name}")
            files[name].chmod(0o600 + number)
            os.utime(files[name], (number * 10**9, number * 10**9))
        assert archive.write(tmp_path / "out.zip", files, {"b"}) == len("content of a") * 2
        written.append((tmp_path / "out.zip").read_bytes())
    assert written[0] == written[1]
    with zipfile.ZipFile(tmp_path / "out.zip") as found:
        assert {entry.filename: entry.external_attr >> 16 for entry in found.infolist()} == {"a": 0o100644, "b": 0o100755}
    assert [path.name for path in tmp_path.glob("*.zip")] == ["out.zip"]
