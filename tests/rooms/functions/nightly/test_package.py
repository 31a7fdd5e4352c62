"""The functions' package: for the platform it says, with all that is imported, small, the same bytes each time."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.packing import ISOLATED, ROOT, package
from tests.rooms.functions.sample_config import CONFIG
from tests.uv import uv

MB = 1_000_000
MACHINES = {"aarch64": 183, "x86_64": 62}
"""e_machine of an ELF header (System V ABI: EM_AARCH64, EM_X86_64)."""
PARTS = ("functions", *(f"functions.{part}" for part in ("gateway", "http_entry", "batch", "scheduled", "codecommit_events")))
PAGE = ("web.page.routes", "web.page.oidc", "inspect.inspector")
ENTRIES = (*PARTS, *PAGE, "app.build", "engine.reconcile", "source.github_app", "source.tag_versions")
LATE = ("botocore.session", "botocore.signers", "jsonschema", "kubernetes.config", "dulwich.client", "yaml")
SERVICES = ("sqs", "sts", "eks", "secretsmanager", "ssm")


def libraries(path: Path) -> dict[str, bytes]:
    """Return the shared libraries of a package by name, each with its ELF header."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name)[:20] for name in archive.namelist() if ".so" in Path(name).suffixes}


def assert_built_for(path: Path, python: str, machine: str) -> None:
    found = libraries(path)
    assert {"yaml", "dulwich", "pydantic_core", "rpds", "cryptography"} <= {name.partition("/")[0] for name in found}
    tags = (f".cpython-{python.replace('.', '')}-{machine}-linux-gnu.so", ".abi3.so")
    assert [name for name in found if not name.endswith(tags)] == []
    assert [name for name, head in found.items() if head[:5] != b"\x7fELF\x02"] == []
    assert {int.from_bytes(head[18:20], "little") for head in found.values()} == {MACHINES[machine]}


def unpacked_size(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def test_the_package_is_for_the_platform_that_was_asked_for_and_small(arm64: Path) -> None:
    assert_built_for(arm64, "3.13", "aarch64")
    assert unpacked_size(arm64) < 71 * MB


def test_with_ssh_and_signatures_it_is_still_small(tmp_path: Path) -> None:
    out = package(tmp_path / "ssh.zip", "--ssh")
    assert_built_for(out, "3.13", "aarch64")
    assert {"paramiko", "pysequoia", "nacl"} <= {name.partition("/")[0] for name in zipfile.ZipFile(out).namelist()}
    assert unpacked_size(out) < 86 * MB


def test_cel_is_packed_where_the_configuration_has_expressions_and_nowhere_else(arm64: Path, tmp_path: Path) -> None:
    target = CONFIG["targets"][1]
    entry = {"apiVersion": "example.com/v1", "current": "status.phase == 'Open'"}
    (tmp_path / "anneal.yaml").write_text(str({**CONFIG, "targets": [target], "healthCheckExprs": [entry]}))
    out = package(tmp_path / "cel.zip", "--config", str(tmp_path / "anneal.yaml"))
    assert_built_for(out, "3.13", "aarch64")
    found = [name for name in libraries(out) if name.startswith("cel_expr_python/")]
    assert found == ["cel_expr_python/cel.cpython-313-aarch64-linux-gnu.so"]
    assert unpacked_size(out) < 84 * MB
    assert not [name for name in zipfile.ZipFile(arm64).namelist() if name.startswith(("cel_expr_python", "bazel-project"))]


def test_re2_is_packed_where_the_configuration_transforms_keys_and_nowhere_else(arm64: Path, tmp_path: Path) -> None:
    resource = {"name": "a", "apiVersion": "example.com/v1", "kind": "A", "keyTransformations": [{"regex": "(.*)/a-(.*)"}]}
    trigger = {"resource": {"mainResource": "a", "resources": [resource]}}
    target = {**CONFIG["targets"][1], "renderer": {"type": "jsonnet"}, "trigger": trigger}
    (tmp_path / "anneal.yaml").write_text(str({**CONFIG, "targets": [target]}))
    out = package(tmp_path / "re2.zip", "--config", str(tmp_path / "anneal.yaml"))
    assert_built_for(out, "3.13", "aarch64")
    assert [name for name in libraries(out) if name.startswith("re2/")] == ["re2/_re2.cpython-313-aarch64-linux-gnu.so"]
    assert not [name for name in zipfile.ZipFile(arm64).namelist() if name.startswith(("re2/", "google_re2"))]


def test_programs_that_render_are_packed_when_they_are_asked_for_and_found_by_the_worker(
    arm64: Path, renderers: Path, tmp_path: Path
) -> None:
    out, task = package(tmp_path / "tools.zip", "--renderers", "--platform", "host"), tmp_path / "task"
    with zipfile.ZipFile(out) as archive:
        modes = {each.filename: each.external_attr >> 16 for each in archive.infolist() if each.filename.startswith("tools/")}
        assert modes == dict.fromkeys(("tools/helm", "tools/jsonnet", "tools/kustomize", "tools/sops"), 0o100755)
        assert {name: archive.read(name) for name in modes} == {name: (renderers / Path(name).name).read_bytes() for name in modes}
        archive.extractall(task)
    for name, mode in modes.items():  # as Lambda does, and extractall doesn't
        (task / name).chmod(mode)
    assert unpacked_size(out) < 230 * MB
    assert not [name for name in zipfile.ZipFile(arm64).namelist() if name.startswith("tools/")]
    code = f"""
import sys
sys.path.insert(0, {str(task)!r})
from handler.config.secrets import Secrets
from handler.config.settings import Settings
from handler.functions.bootstrap import Bootstrap, clusters
clusters(Bootstrap(Settings(()), Secrets(), None, None), {{}})
from handler.render import render_tools
print(*(render_tools.find(name).path for name in ("helm", "kustomize", "sops")))
"""
    done = subprocess.run([*ISOLATED, "-c", code], capture_output=True, text=True, check=False, env={"PATH": ""})
    assert done.stdout.split() == [str(task / "tools" / name) for name in ("helm", "kustomize", "sops")], done.stderr


def test_the_same_inputs_give_the_same_bytes_in_another_place(task: Path, tmp_path: Path) -> None:
    """Another checkout, another cache, other modes, another time zone, other hashes of strings."""
    elsewhere = tmp_path / "checkout"
    for name in ("handler", "infra"):
        shutil.copytree(ROOT / name, elsewhere / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile)
    for lock in ROOT.glob("requirements*.lock"):
        shutil.copyfile(lock, elsewhere / lock.name)
    options = ["--uv", uv(), "--cache", str(tmp_path / "cache"), "--platform", "host", "-o", str(tmp_path / "again.zip")]
    environ = {**os.environ, "PYTHONPATH": str(elsewhere), "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7"}
    command = ["sh", "-c", 'umask 077; exec "$0" -P -m infra.functions.package "$@"', sys.executable, *options]
    subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True)
    assert (tmp_path / "again.zip").read_bytes() == (task.parent / "host.zip").read_bytes()


def test_all_that_functions_import_is_in_the_package(task: Path) -> None:
    """In a Python that sees nothing else: the entry points, what they import late, botocore's clients of our services; all compiled."""
    assert_built_for(task.parent / "host.zip", f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine())
    code = f"""
import importlib.util, os, sys
sys.path.insert(0, {str(task)!r})
for name in {[*(f"handler.{name}" for name in ENTRIES), *LATE]!r}: importlib.import_module(name)
import botocore.session
amazon = botocore.session.get_session()
for service in {SERVICES!r}:
    amazon.create_client(service, region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="y")
import yaml; yaml.CSafeLoader
files = {{name: getattr(each, "__file__", None) or "" for name, each in sys.modules.items()}}
outside = [name for name, file in files.items() if "site-packages" in file]
assert not outside, outside
inside = [name for name, file in files.items() if file.startswith({str(task)!r}) and file.endswith(".py")]
slow = [name for name in inside if not os.path.exists(importlib.util.cache_from_source(files[name]))]
assert len(inside) > 100 and not slow, slow
"""
    done = subprocess.run([*ISOLATED, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
