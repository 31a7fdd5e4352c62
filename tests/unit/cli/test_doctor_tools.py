"""`anneal doctor`'s rows on kustomize, helm and sops."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler.cli.check_table import Findings
from handler.cli.doctor import look_at_tools
from handler.cli.output import Output
from handler.config.decryption import Decryption
from handler.config.git_settings import Repository
from handler.config.renderer_settings import RendererSettings
from handler.config.settings import Target
from handler.config.settings_shape import Json

ABSENT_NIX = ("skipped", "isn't installed here, and a NixOS module can't be rendered without it", "")
ABSENT = "isn't installed here, and a chart can't be rendered without it"


def tool(place: Path, name: str, version: str) -> None:
    place.mkdir(exist_ok=True)
    (place / name).write_text(f"#!/bin/sh\necho {version}\n")
    (place / name).chmod(0o755)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory in which a program is found."""
    monkeypatch.setenv("ANNEAL_TOOLS", str(tmp_path / "tools"))
    monkeypatch.setenv("PATH", "")
    return tmp_path / "tools"


def rows(*renderers: RendererSettings, decryption: Decryption | None = None) -> dict[str, tuple[str, str, str]]:
    """Return verdict, text and way out by subject."""
    findings = Findings(Output(as_json=True))
    repository = Repository("https://git.example.com/a.git")
    look_at_tools([Target(f"t{n}", repository, ("a",), renderer=each, decryption=decryption) for n, each in enumerate(renderers)], findings)
    found: dict[str, tuple[str, str, str]] = {}
    for row in findings.rows:
        (text, fix), *_ = [(each.message, each.fix) for each in row.problems] or [(row.seen, "")]
        found[row.subject] = row.verdict, text, fix
    return found


def test_what_is_there_is_said_with_version_and_path(place: Path) -> None:
    tool(place, "kustomize", "v5.8.1")
    tool(place, "helm", "v3.22.0")
    tool(place, "sops", "sops 3.13.3")
    tool(place, "jsonnet", "v0.22.0")
    versions = {"kustomize": "v5.8.1", "helm": "v3.22.0", "jsonnet": "v0.22.0", "sops": "3.13.3"}
    found = {name: ("ok", f"{version} ({place}/{name})", "") for name, version in versions.items()}
    assert rows() == {**found, "nix": ABSENT_NIX}


def test_sops_is_missed_where_a_target_decrypts(place: Path) -> None:
    assert rows(RendererSettings())["sops"][0] == "skipped"
    verdict, text, fix = rows(RendererSettings(), decryption=Decryption(kms=("x",)))["sops"]
    assert (verdict, text) == ("warning", "isn't installed here, and an encrypted file can't be rendered without it; needed by t0")
    assert fix.startswith("install sops 3.9.0 or newer on PATH")


@pytest.mark.parametrize("renderer", [RendererSettings("file"), RendererSettings("auto"), RendererSettings("kustomize")])
def test_what_no_target_names_may_be_missing(place: Path, renderer: RendererSettings) -> None:
    tool(place, "kustomize", "v5.8.1")
    assert rows(renderer)["helm"] == ("skipped", ABSENT, "")


@pytest.mark.parametrize("renderer", [RendererSettings("helm"), RendererSettings("kustomize", helm_charts=True)])
def test_what_a_target_names_is_missed_with_the_way_out(place: Path, renderer: RendererSettings) -> None:
    verdict, text, fix = rows(RendererSettings("file"), renderer, renderer)["helm"]
    assert (verdict, text) == ("warning", f"{ABSENT}; needed by t1, t2")
    assert fix.startswith("install helm 3.16.0 or newer on PATH; in a clone: scripts/renderers")


def test_nix_is_missed_with_what_installs_it(place: Path) -> None:
    verdict, text, fix = rows(RendererSettings("nix"))["nix"]
    assert (verdict, text) == ("warning", f"{ABSENT_NIX[1]}; needed by t0")
    assert fix == (
        "install nix-instantiate 2.8.0 or newer on PATH, of Debian: apt-get install --no-install-recommends nix-bin; in a clone: "
        "scripts/renderers nix"
    )
    tool(place, "nix-instantiate", "'nix-instantiate (Nix) 2.18.1'")
    assert rows(RendererSettings("nix"))["nix"] == ("ok", f"2.18.1 ({place}/nix-instantiate)", "")


def test_a_directory_that_a_target_names_is_looked_for(place: Path, tmp_path: Path) -> None:
    assert not place.exists()
    found = rows(RendererSettings("nix", nix_path=Json(f'{{"here": "{tmp_path}", "nixpkgs": "{tmp_path}/none"}}')))
    assert "nixPath.here" not in found
    verdict, text, fix = found["nixPath.nixpkgs"]
    assert (verdict, text) == ("warning", f"{tmp_path}/none: is no directory here; needed by t0")
    assert fix.startswith("correct nixPath")


def test_one_that_is_too_old_counts_as_missing(place: Path) -> None:
    tool(place, "helm", "v3.15.0")
    verdict, text, fix = rows(RendererSettings("helm"))["helm"]
    assert (verdict, text) == ("warning", f"{place}/helm is version v3.15.0; 3.16.0 or newer is needed; needed by t0")
    assert fix == "install helm 3.16.0"
