"""The functions' package: for the platform it says, with all that is imported, small, the same bytes each time."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.packing import ISOLATED, ROOT
from tests.rooms.functions.sample_config import CONFIG


def test_the_configuration_lies_inside_with_what_it_names_and_nothing_else_of_its_place(arm64: Path) -> None:
    with zipfile.ZipFile(arm64) as archive:
        names = archive.namelist()
        assert archive.read("trust/ca.pem") == b"an authority\n"
        assert archive.read("anneal.yaml") == (arm64.parent / "mine.yaml").read_bytes()
    assert "handler/functions/__init__.py" in names
    server = ("handler/web/gunicorn_worker.py", "handler/web/page/live_feed.py", "handler/worker/worker.py")
    left_out = ("handler/cli/", *server, "kubernetes/aio/", "aiohttp/", "boto3/", "gunicorn/", "rich/")
    assert [name for name in names if name.startswith(left_out)] == []


def test_the_page_is_packed_whole(arm64: Path) -> None:
    with zipfile.ZipFile(arm64) as archive:
        packed = set(archive.namelist())
    page = ROOT / "handler" / "web" / "page"
    files = {path.relative_to(ROOT).as_posix() for name in ("templates", "static") for path in (page / name).iterdir()}
    assert files
    assert files <= packed


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "import handler.source.git_host as s; s.upload_pack(Repository(url='ssh://git@example.com/a.git'), None, HostLimits())",
            "a repository by SSH: needs the library paramiko",
        ),
        (
            "h = Handler(Settings(targets=(t,)), Secrets(), None, {}); h.source(t)",
            "targets[shop].verify: needs the library pysequoia",
        ),
    ],
)
def test_a_configuration_that_needs_a_library_left_out_of_the_package_is_refused(task: Path, code: str, told: str) -> None:
    prelude = f"""
import sys
sys.path.insert(0, {str(task)!r})
from handler.app.build import Handler
from handler.config.git_settings import Repository, Verify
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.model.errors import ConfigInvalid
from handler.source.host_limits import HostLimits
t = Target("shop", Repository(url="https://git.example.com/a.git"), ("shop",), verify=Verify())
try:
    {code}
except ConfigInvalid as error:
    print(error)
"""
    done = subprocess.run([*ISOLATED, "-c", prelude], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(told)
    assert "scripts/package --ssh" in done.stdout


def test_a_configuration_that_no_function_could_run_is_refused(tmp_path: Path) -> None:
    """Before anything is packed, with all mistakes at once."""
    (tmp_path / "anneal.yaml").write_text(str({**CONFIG, "webhooks": {"github": {"secrets": [{"file": "/run/hook"}]}}}))
    command = [str(ROOT / "scripts" / "package"), "--config", str(tmp_path / "anneal.yaml"), "-o", str(tmp_path / "package.zip")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "trust/ca.pem: expected a file, found none at" in done.stderr
    assert not (tmp_path / "package.zip").exists()
