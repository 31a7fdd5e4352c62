"""`scripts/release`: what it makes is whole, the same wherever it is made, and goes to a registry; a tag that disagrees is refused."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler import __version__
from infra.release import build, source, version
from infra.release.__main__ import main
from infra.release.tools import binaries as tools
from infra.renderers.build import binaries as renderers
from tests.clone import clone_to
from tests.uv import uv

pytestmark = pytest.mark.usefixtures("renderers")

ROOT = Path(__file__).resolve().parents[3]
NAMES = {build.WHEEL, build.SDIST, build.CHART, build.SBOM, build.NOTES, build.SUMS}
ELSEWHERE = "https://git.example.org/teams/anneal"
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]


# --- what is built
def test_a_release_is_whole_and_its_checksums_hold(release: Path) -> None:
    assert {path.name for path in release.iterdir()} == NAMES
    sums = {name: digest for digest, name in (line.split("  ") for line in (release / build.SUMS).read_text().splitlines())}
    assert set(sums) == NAMES - {build.NOTES, build.SUMS}
    assert {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in sums} == sums


def test_the_same_commit_gives_the_same_bytes_in_another_place(release: Path, tmp_path: Path) -> None:
    """Another checkout, another umask, another time zone, another time of its files, other hashes of strings."""
    clone = clone_to(tmp_path / "checkout")
    subprocess.run(["git", "init", "-q"], cwd=clone, check=True)
    for path in clone.rglob("*.py"):
        os.utime(path)
    environ = {"PYTHONPATH": str(clone), "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": str(source.committed())}
    command = ["sh", "-c", 'umask 077; exec "$0" -P -m infra.release --uv "$@"', sys.executable, uv(), "build", "--uncommitted"]
    subprocess.run([*command, str(tmp_path / "again")], cwd=tmp_path, env=os.environ | environ, check=True, capture_output=True)
    for name in sorted(NAMES):
        assert (tmp_path / "again" / name).read_bytes() == (release / name).read_bytes(), name


def test_the_bill_of_materials_names_every_locked_version_and_who_depends_on_it(release: Path) -> None:
    bill: dict[str, Any] = json.loads((release / build.SBOM).read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    ours = bill["metadata"]["component"]
    assert (ours["name"], ours["version"], ours["purl"]) == ("anneal-gitops", __version__, f"pkg:pypi/anneal-gitops@{__version__}")
    locked = dict(re.findall(r"^([\w.-]+)(?:\[.*?\])?==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    found = {re.sub(r"[-_.]+", "-", each["name"]).lower(): each["version"] for each in bill["components"]}
    assert found == {re.sub(r"[-_.]+", "-", name).lower(): pinned for name, pinned in locked.items()}
    (root,) = [each for each in bill["dependencies"] if each["ref"] == ours["bom-ref"]]
    asked = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert len(root["dependsOn"]) == len(asked)
    assert str(ROOT) not in json.dumps(bill)


def test_the_chart_is_packed_whole(release: Path) -> None:
    chart = ROOT / "infra" / "kubernetes" / "chart"
    with tarfile.open(release / build.CHART) as archive:
        packed = {member.name.removeprefix("anneal/"): member for member in archive}
        described = yaml.safe_load(archive.extractfile("anneal/Chart.yaml"))  # type: ignore[arg-type]  # it is a file
    assert set(packed) == {str(path.relative_to(chart)) for path in chart.rglob("*") if path.is_file()} - {".helmignore"}
    assert {member.mtime for member in packed.values()} == {source.committed()}
    assert (described["version"], described["appVersion"]) == (__version__, __version__)


# --- where the chart goes
@pytest.fixture
def registry() -> Iterator[str]:
    """A registry of OCI artifacts on loopback: go-containerregistry's, in memory."""
    with subprocess.Popen([tools() / "registry", "-port", "0"], stderr=subprocess.PIPE, text=True) as served:
        try:
            for line in served.stderr or ():
                if found := re.search(r"serving on port (\d+)", line):
                    yield f"localhost:{found[1]}"
                    break
        finally:
            served.terminate()


def test_the_chart_is_pushed_as_an_artifact_and_installed_from_its_digest(release: Path, registry: str, tmp_path: Path) -> None:
    command = [str(ROOT / "scripts" / "release"), "push", str(release), f"oci://{registry}/charts", "--plain-http"]
    pushed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert re.fullmatch(rf"{registry}/charts/anneal@sha256:[0-9a-f]{{64}}", pushed)
    helm = str(renderers() / "helm")
    pull = [helm, "pull", f"oci://{pushed}", "--plain-http", "--destination", str(tmp_path)]
    subprocess.run(pull, check=True, capture_output=True)
    (got,) = tmp_path.iterdir()
    assert got.read_bytes() == (release / build.CHART).read_bytes()
    of = ROOT / "infra" / "kubernetes" / "overlays" / "single-namespace"
    values = ["-f", str(of / "values.yaml"), "--set-file", f"config={of / 'anneal.yaml'}", "--set-file", f"rbac={of / 'rbac.yaml'}"]
    rendered = subprocess.run([helm, "template", "anneal", str(got), *values], check=True, capture_output=True, text=True).stdout
    assert "kind: Deployment" in rendered


# --- which tags may be released
@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that a check reads, with a changelog that has the version's section, in a repository of their own."""
    for name in ("pyproject.toml", "docs/ci.md", ".github/ISSUE_TEMPLATE/config.yml", "infra/kubernetes/chart/Chart.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text()
        (tmp_path / name).write_text(text.replace(HOME, f"https://{version.EXAMPLE}"))  # a maintainer has replaced it
    sections = ("[Unreleased]\n\n- Later.", f"[{__version__}] - 2026-01-31\n\n### Added\n\n- All of it.", "[0.0.9] - 2025-01-01\n\n- x")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n" + "".join(f"\n## {each}\n" for each in sections))
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_a_tag_that_agrees_may_be_released(checkout: Path) -> None:
    assert list(version.disagreements(f"v{__version__}", root=checkout)) == []
    assert version.section(__version__, checkout) == ("2026-01-31", "### Added\n\n- All of it.")


@pytest.mark.parametrize("tag", ["v9.9.9", __version__, f"v{__version__}-rc1"])
def test_a_tag_of_another_version_is_refused(checkout: Path, tag: str) -> None:
    assert f"the tag is {tag}, handler.__version__ is {__version__}" in "\n".join(version.disagreements(tag, root=checkout))


@pytest.mark.parametrize("field", ["version", "appVersion"])
def test_a_chart_of_another_version_is_refused(checkout: Path, field: str) -> None:
    chart = checkout / "infra" / "kubernetes" / "chart" / "Chart.yaml"
    chart.write_text(re.sub(rf"^{field}: .*$", f"{field}: 9.9.9", chart.read_text(), flags=re.MULTILINE))
    (found,) = version.disagreements(f"v{__version__}", root=checkout)
    assert f"{field} is 9.9.9" in found


@pytest.mark.parametrize("heading", ["[Unreleased]", f"[{__version__}]", f"[{__version__}0] - 2026-01-31"])
def test_a_version_without_a_dated_section_is_refused(checkout: Path, heading: str) -> None:
    (checkout / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n\n- All of it.\n")
    (found,) = version.disagreements(f"v{__version__}", root=checkout)
    assert "CHANGELOG.md: no section" in found


def test_an_example_for_the_home_is_never_released(checkout: Path) -> None:
    found = "\n".join(version.disagreements(f"v{__version__}", ELSEWHERE, checkout))
    for place in ("pyproject.toml: the repository is", "docs/ci.md: names", ".github/ISSUE_TEMPLATE/config.yml: names"):
        assert place in found
    for path in (checkout / "pyproject.toml", checkout / "docs" / "ci.md", checkout / ".github" / "ISSUE_TEMPLATE" / "config.yml"):
        path.write_text(path.read_text().replace(f"https://{version.EXAMPLE}", ELSEWHERE))
    assert list(version.disagreements(f"v{__version__}", ELSEWHERE, checkout)) == []


def test_what_is_not_committed_is_named(checkout: Path) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *author, "commit", "-q", "-m", "All of it"], cwd=checkout, check=True)
    assert version.uncommitted(checkout) == []
    (checkout / "new.txt").touch()
    assert version.uncommitted(checkout) == ["?? new.txt"]


def test_what_is_not_committed_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(version, "uncommitted", lambda: ["?? new.txt"])
    assert main(["build", str(tmp_path / "dist")]) == 1
    assert "release: not committed: ?? new.txt\nrelease: commit or stash it" in capfd.readouterr().err
    assert not (tmp_path / "dist").exists()


def test_a_directory_that_is_none_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["build", "--uncommitted", str(tmp_path / "file")]) == 1
    assert main(["push", str(tmp_path), "oci://registry.example.com"]) == 1
    said = capfd.readouterr().err
    assert f"release: {tmp_path}/file: File exists; name a directory" in said
    assert f"release: there is no {build.CHART} in {tmp_path}; make it: scripts/release build DIR" in said


def test_the_chart_and_the_code_have_one_version() -> None:
    assert [each for each in version.disagreements(f"v{__version__}") if "CHANGELOG.md" not in each] == []


def test_a_refusal_is_the_end_of_the_script() -> None:
    done = subprocess.run([ROOT / "scripts" / "release", "check", "v9.9.9"], capture_output=True, text=True, check=False)
    assert (done.returncode, "release: the tag is v9.9.9" in done.stdout) == (1, True)
