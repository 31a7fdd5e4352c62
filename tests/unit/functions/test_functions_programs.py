"""Which programs that render go into the functions' package, and which targets no function can render."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from handler.config.decryption import Decryption
from handler.config.git_settings import Repository
from handler.config.renderer_settings import RendererSettings
from handler.config.settings import Cluster, Eks, Settings, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.errors import ConfigInvalid
from handler.render import render_tools
from infra.functions import programs
from infra.functions.configured import unfit
from infra.gobuild import BuildError
from infra.renderers import build, nix
from tests.unit.rows import each_row

SHOP = Target("shop", Repository("https://git.example.com/shop.git"), ("shop",), cluster=Cluster(eks=Eks("prod")))
FILES, AUTO = RendererSettings("file"), RendererSettings()
PROGRAM = RendererSettings("jsonnet")
GLOBS = RendererSettings(include=("*.yaml",))
KUSTOMIZE, INFLATING, HELM = RendererSettings("kustomize"), RendererSettings("kustomize", helm_charts=True), RendererSettings("helm")


def settings(*renderers: RendererSettings, sandbox: Literal["strict", "weak"] = "strict") -> Settings:
    return Settings(tuple(replace(SHOP, name=f"t{n}", renderer=each, sandbox=sandbox) for n, each in enumerate(renderers)))


@each_row(
    ("renderers", "names"),
    [
        ((FILES,), set()),
        ((GLOBS,), set()),
        ((KUSTOMIZE, FILES), {"kustomize"}),
        ((HELM,), {"helm"}),
        ((INFLATING,), {"kustomize", "helm"}),
        ((KUSTOMIZE, HELM), {"kustomize", "helm"}),
        ((AUTO,), {"kustomize", "helm"}),
    ],
)
def test_what_is_packed_follows_from_the_renderers_of_all_targets(renderers: tuple[RendererSettings, ...], names: set[str]) -> None:
    assert programs.needed(settings(*renderers)) == names


def test_sops_is_packed_where_a_target_decrypts() -> None:
    (target,) = settings(FILES).targets
    decrypting = replace(target, decryption=Decryption(kms=("arn",)))
    assert programs.needed(Settings((decrypting,))) == {"sops"}
    (problem, _) = unfit(Settings((decrypting,)), ssh=False)
    assert problem.message == "needs sops, which isn't packed"


@each_row(("sandbox", "names"), [("strict", set()), ("weak", {"jsonnet"})])
def test_jsonnets_program_is_packed_where_a_function_runs_it_and_a_library_evaluates_elsewhere(
    sandbox: Literal["strict", "weak"], names: set[str]
) -> None:
    given = settings(PROGRAM, FILES, sandbox=sandbox)
    assert programs.needed(given) == names
    assert [unfit(given, ssh=False, renderers=where, arch="x86_64") for where in ("", programs.ZIP, programs.IMAGE)] == [()] * 3


@each_row(
    ("sandbox", "where", "fits"),
    [("strict", programs.ZIP, False), ("weak", "", False), ("weak", programs.ZIP, True), ("weak", programs.IMAGE, True)],
)
def test_on_arm_no_library_stands_in_for_jsonnets_program(sandbox: Literal["strict", "weak"], where: str, fits: bool) -> None:
    given = settings(PROGRAM, FILES, sandbox=sandbox)
    found = unfit(given, ssh=False, renderers=where, arch="arm64")
    assert [(each.subject, "on arm64" in each.message, "--platform x86_64" in each.fix) for each in found] == [
        ("targets[t0].renderer", True, True)
    ] * (not fits)


def test_no_function_runs_instances_so_that_their_template_fits() -> None:
    (target,) = settings(PROGRAM).targets
    kind = WatchedResource("g", "example.com/v1", "Grafana")
    template = replace(target, trigger=TriggerSettings(resource=ResourceTrigger("g", (kind,))))
    assert unfit(Settings((template,)), ssh=False, arch="arm64") == ()


def test_no_function_has_a_directory_in_memory_for_what_was_decrypted() -> None:
    (target,) = settings(HELM, sandbox="weak").targets
    given = replace(target, decryption=Decryption(kms=("arn",)))
    (problem,) = unfit(Settings((given,)), ssh=False, renderers=programs.ZIP)
    assert str(problem).startswith("targets[t0].decryption: would give helm decrypted files on disk")
    for renderer in (FILES, PROGRAM):
        assert unfit(Settings((replace(given, renderer=renderer),)), ssh=False, renderers=programs.ZIP, arch="x86_64") == ()
    assert unfit(Settings((replace(given, renderer=PROGRAM),)), ssh=False, renderers=programs.ZIP, arch="arm64")


def test_without_a_configuration_all_are_packed() -> None:
    assert programs.needed(None) == {"kustomize", "helm", "jsonnet", "sops"} == set(programs.LARGEST)


@each_row(("renderer", "needs"), [(KUSTOMIZE, "kustomize"), (HELM, "helm"), (INFLATING, "kustomize and helm")])
def test_a_target_whose_program_is_not_packed_is_refused_with_the_ways_out(renderer: RendererSettings, needs: str) -> None:
    (problem,) = unfit(settings(renderer, sandbox="weak"), ssh=False)
    assert (problem.subject, problem.message) == ("targets[t0].renderer", f"needs {needs}, which isn't packed")
    assert "scripts/package --renderers; or --renderers image" in problem.fix


@each_row("where", ["", programs.ZIP, programs.IMAGE])
def test_nix_is_packed_for_no_function(where: str) -> None:
    given = settings(RendererSettings("nix"), sandbox="weak")
    (problem,) = unfit(given, ssh=False, renderers=where)
    assert (problem.message, problem.fix) == (
        "needs nix, which isn't packed for functions",
        "run this target in a container or a process that has nix",
    )
    assert programs.needed(given) == frozenset()


@each_row("where", [programs.ZIP, programs.IMAGE])
def test_a_program_behind_strict_walls_runs_in_no_function(where: str) -> None:
    (problem,) = unfit(settings(HELM), ssh=False, renderers=where)
    assert str(problem).startswith("targets[t0].sandbox: is strict, and AWS Lambda refuses the walls that helm would run behind")
    assert problem.fix.startswith("sandbox: weak")
    assert "in a container" in problem.fix
    assert unfit(settings(HELM, KUSTOMIZE, sandbox="weak"), ssh=False, renderers=where) == ()


def test_all_that_is_wrong_with_a_target_is_told_at_once() -> None:
    assert [each.subject for each in unfit(settings(FILES, HELM), ssh=False)] == ["targets[t1].renderer", "targets[t1].sandbox"]


def test_what_the_tree_decides_is_no_mistake_and_is_named() -> None:
    found = settings(FILES, AUTO, GLOBS)
    assert unfit(found, ssh=False) == ()
    assert programs.undecided(found) == ("t1",)
    assert programs.undecided(settings(AUTO, sandbox="weak")) == ()


@pytest.mark.parametrize(("arch", "platform"), [("arm64", "linux/arm64"), ("x86_64", "linux/amd64")])
def test_programs_are_built_for_the_processor_of_the_functions(arch: str, platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "binaries", lambda asked: {platform: Path("/built")}[asked])
    assert programs.packed(frozenset({"helm"}), arch) == {"tools/helm": Path("/built/helm")}


def test_without_a_program_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "binaries", lambda _asked: pytest.fail("built"))
    assert programs.packed(frozenset(), "arm64") == {}


def test_a_build_that_fails_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_platform: str) -> Path:
        raise BuildError("there is no `go` on PATH")

    monkeypatch.setattr(programs, "binaries", fails)
    with pytest.raises(ConfigInvalid, match=r"^--renderers: there is no `go` on PATH"):
        programs.packed(programs.BOTH, "arm64")


def test_a_build_for_another_platform_lies_elsewhere_and_one_for_this_machine_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infra.gobuild.Build.ensure", lambda self, _log: self.directory)
    monkeypatch.setattr(build, "this_machine", lambda: "linux/amd64")
    own, same, other = (build.binaries(each) for each in ("", "linux/amd64", "linux/arm64"))
    assert own == same == build.BUILD.directory / "bin"
    assert other.parent != own.parent
    assert other.parent.parent == own.parent.parent


def test_what_a_clone_starts_finds_the_build_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build.VARIABLE == render_tools.DIRECTORY
    monkeypatch.delenv(build.VARIABLE)
    assert build.environment()[build.VARIABLE] == f"{build.BUILD.directory / 'bin'}:{nix.directory()}"
    monkeypatch.setenv(build.VARIABLE, "/mine")
    assert build.environment()[build.VARIABLE] == "/mine"
