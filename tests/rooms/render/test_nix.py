"""What the Nix renderer makes of modules of Kubernixos: objects, checksum, server, places, and what it read."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import ManifestInvalid, RendererUnavailable, SourceRefused
from handler.render import Sandbox
from tests.rooms.render.nix_modules import LIB, NAMESPACE, NIXPKGS, bare, module, nix_tools, reads, refused, render, value

LIST = f"{{ kubernixos.manifests = [ {NAMESPACE} ]; }}\n"
NAMED = f"{{ kubernixos.manifests.ns = {NAMESPACE}; }}\n"
GROUP = {
    "hosts/prod/group.nix": """let
  packages = import ../../common/nixpkgs.nix { version = "18.09"; };
in
{
  network = {
    description = "Production";
    pkgs = packages;
    modules = [ ../../modules/web.nix ./prod.nix ];
  };
  web1 = { ... }: { deployment.targetHost = "web1"; };
}
""",
    "hosts/prod/prod.nix": '{ kubernixos.server = "https://prod.example.com"; }\n',
    "common/nixpkgs.nix": "{ version }: { inherit version; lib = import ../vendor/lib; }\n",
    "vendor/lib/default.nix": LIB["nixpkgs/lib/default.nix"],
    "modules/web.nix": "{ pkgs, ... }:\n{\n  imports = [ ./base.nix ];\n  kubernixos.manifests.web = {\n"
    '    apiVersion = "v1"; kind = "Service"; metadata.name = "web"; metadata.labels.version = pkgs.version;\n  };\n}\n',
    "modules/base.nix": "{ kubernixos.manifests.ns = builtins.fromJSON (builtins.readFile ../data/ns.json); }\n",
    "modules/other.nix": "{ }\n",
    "data/ns.json": '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "development"}}\n',
    "data/other.json": "{}\n",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with nix_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize(("text", "manifests"), [(LIST, f"[ {NAMESPACE} ]"), (NAMED, f"{{ ns = {NAMESPACE}; }}")], ids=["list", "by name"])
def test_objects_and_checksum_are_what_nix_says_itself(sandbox: Sandbox, tmp_path: Path, text: str, manifests: str) -> None:
    found = render(sandbox, {"deploy/kubernixos.nix": text})
    assert [each.body() for each in found.manifests] == [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "development"}}]
    assert found.checksum == bare({}, f'builtins.substring 0 62 (builtins.hashString "sha256" (builtins.toJSON {manifests}))', tmp_path)
    assert (found.renderer, found.server, found.notes) == ("nix", "", ())


def test_the_checksum_is_that_of_the_json_before_anything_is_added(sandbox: Sandbox) -> None:
    found = render(sandbox, {"deploy/kubernixos.nix": NAMED})
    assert found.checksum == "f2dbac2b8617f56545b932d382d8bbd90021f852af1e49d9219d5a09db3067", "as the original computes it"
    assert "labels" not in found.manifests[0].body()["metadata"]


def test_every_value_that_nix_writes_as_json_arrives(sandbox: Sandbox, tmp_path: Path) -> None:
    text = (
        '{ t = "é\\n\\"\\\\ ${"$"}{x}"; n = null; b = true; i = -9223372036854775807; f = 1.5; w = 2.0; l = [ 1 [ ] { } ]; "a.b/c" = 0; }'
    )
    body = f'{{ kind = "Any"; apiVersion = "example.com/v1"; metadata.name = "a"; spec = {text}; }}'
    found = render(sandbox, {"deploy/kubernixos.nix": f"{{ kubernixos.manifests.a = {body}; }}"})
    assert found.manifests[0].body() == bare({}, body, tmp_path)


def test_a_hostgroup_as_it_is_names_packages_and_modules(sandbox: Sandbox) -> None:
    modules, packages = "(import ./group.nix).network.modules", "(import ./group.nix).network.pkgs"
    found = render(sandbox, GROUP, "hosts/prod", modules=modules, packages=packages, nix_path=None)
    assert [(str(each.identity), each.place) for each in found.manifests] == [
        ("Namespace/development", "modules/base.nix:1"),
        ("Service/web", "modules/web.nix:5"),
    ]
    assert found.manifests[1].body()["metadata"]["labels"] == {"version": "18.09"}
    assert found.server == "https://prod.example.com"
    named = {"common/nixpkgs.nix", "data/ns.json", "hosts/prod", "modules/base.nix", "modules/web.nix", "vendor/lib"}
    assert reads(found) == {"//tool/nix"} | named, "what expressions lead to, and nothing beside it"


def test_modules_merge_as_in_nixos(sandbox: Sandbox) -> None:
    files = {
        "deploy/kubernixos.nix": '{ lib, ... }: { imports = [ ./more.nix ]; kubernixos.server = lib.mkDefault "a";\n'
        f"  kubernixos.manifests = lib.mkMerge [ {{ b = {NAMESPACE}; }} (lib.mkIf false {{ c = {NAMESPACE}; }}) ]; }}",
        "deploy/more.nix": f'{{ kubernixos.server = "b"; kubernixos.manifests.a = {NAMESPACE.replace("development", "other")}; }}',
    }
    found = render(sandbox, files)
    assert [str(each.identity) for each in found.manifests] == ["Namespace/other", "Namespace/development"]
    assert found.server == "b"


def test_options_of_the_original_are_taken(sandbox: Sandbox) -> None:
    more = 'version = "1.30.0"; skipSchemas = [ "A" ]; schemas = throw "never read"; build = throw "never built"; server = "https://a";'
    found = render(sandbox, {"deploy/kubernixos.nix": f"{{ kubernixos = {{ {more} manifests = [ {NAMESPACE} ]; }}; }}"})
    assert (found.server, len(found.manifests)) == ("https://a", 1)


def test_what_is_evaluated_can_be_read_by_modules(sandbox: Sandbox) -> None:
    begin = "builtins.substring 0 4 config.kubernixos.checksum"
    text = f'{{ config, ... }}: {{ kubernixos.manifests = [ ]; kubernixos.server = "https://${{{begin}}}"; }}'
    found = render(sandbox, {"deploy/kubernixos.nix": text})
    assert found.server == f"https://{found.checksum[:4]}"


def test_a_tree_with_a_module_of_its_own_keeps_it(sandbox: Sandbox) -> None:
    option = "lib.mkOption { type = lib.types.attrsOf lib.types.attrs; }"
    server = "lib.mkOption { type = lib.types.str; }"
    theirs = f"{{ lib, ... }}: {{ options.kubernixos.manifests = {option}; options.kubernixos.server = {server}; }}"
    files = {
        "deploy/kubernixos.nix": f"{{ imports = [ ./theirs.nix ]; kubernixos.manifests.a = {NAMESPACE}; }}",
        "deploy/theirs.nix": theirs,
    }
    found = render(sandbox, files)
    assert (len(found.manifests), found.server, len(found.checksum)) == (1, "", 62)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that a render of root's, which runs as another user, may read, wherever the checkout lies."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_hostgroups_that_set_other_options_of_nixos_are_evaluated_as_nixos(sandbox: Sandbox, place: Path) -> None:
    shutil.copytree(NIXPKGS, place / "one")
    text = f'{{ pkgs, ... }}: {{ services.nginx.enable = true; networking.hostName = "a"; kubernixos.manifests = [ {NAMESPACE} ]; }}'
    found = render(sandbox, {"deploy/kubernixos.nix": text}, nix_path={"nixpkgs": f"{place}/one"})
    assert len(found.manifests) == 1
    problem = refused(sandbox, {"deploy/kubernixos.nix": text})
    assert (problem.subject, problem.place) == ("networking", "deploy/kubernixos.nix"), "the lib alone has no option of NixOS"


def test_nixpkgs_of_the_operator_is_known_by_its_content(sandbox: Sandbox, place: Path) -> None:
    for name in ("one", "other", "changed"):
        shutil.copytree(NIXPKGS, place / name)
    with (place / "changed" / "lib" / "default.nix").open("a") as file:
        file.write("# changed\n")
    digests = []
    for name in ("one", "other", "changed"):
        found = render(sandbox, {"deploy/kubernixos.nix": LIST}, nix_path={"nixpkgs": f"{place}/{name}"})
        digests.append(dict(found.reads.paths)[f"//directory/{place}/{name}"])
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "packages",
    [
        "import ../own",
        "../own",
        "../own/default.nix",
        "{ }: import ../own { }",
        '{ lib = import ../nixpkgs/lib; version = "7"; }',
    ],
)
def test_packages_may_be_a_set_a_function_or_what_makes_one(sandbox: Sandbox, packages: str) -> None:
    own = {"own/default.nix": '{ }: { lib = import ../nixpkgs/lib; version = "7"; }\n'}
    assert value(sandbox, "pkgs.version", own, packages=packages) == "7"


def test_a_path_without_modules_is_refused_with_both_ways_out(sandbox: Sandbox) -> None:
    with pytest.raises(
        SourceRefused, match=r"deploy/kubernixos\.nix: isn't there, and the target names no modules; add it, or name modules"
    ):
        render(sandbox, {"deploy/other.nix": LIST})


def test_modules_may_be_one_module_and_hold_every_character(sandbox: Sandbox) -> None:
    text = '{ lib, ... }: { kubernixos.server = "{ home }"; kubernixos.manifests = [ ]; }'
    assert render(sandbox, {"deploy/x": ""}, modules=text).server == "{ home }"


@pytest.mark.parametrize(
    ("expression", "files", "expected"),
    [
        ("builtins.readFile ../config/a.txt", {"config/a.txt": "one"}, {"config/a.txt"}),
        (
            'import ../common/a.nix + "b"',
            {"common/a.nix": "import ./deep/b.nix", "common/deep/b.nix": '"x"'},
            {"common/a.nix", "common/deep/b.nix"},
        ),
        ('builtins.concatStringsSep "" (builtins.attrNames (builtins.readDir ../all))', {"all/a": "", "all/b": ""}, {"all"}),
        ("import ../.", {"default.nix": '"root"', "other.nix": ""}, {"default.nix"}),
        ("import ../plain/x/y.nix", {"plain/x/y.nix": "import z/w.nix", "plain/x/z/w.nix": '"w"'}, {"plain/x/y.nix", "plain/x/z/w.nix"}),
    ],
)
def test_reads_are_what_expressions_name(sandbox: Sandbox, expression: str, files: dict[str, str], expected: set[str]) -> None:
    found = render(sandbox, {"deploy/kubernixos.nix": module(expression), "unrelated/a.nix": "{ }", **files})
    assert {path for path, oid in found.reads.paths if oid} == {"//tool/nix", "deploy", "nixpkgs", *expected}


def test_what_is_reached_without_being_named_is_listed(sandbox: Sandbox) -> None:
    files = {"common/a.txt": "text", "hidden/b.txt": "text"}
    expression = './. + "/../common/a.txt"'
    problem = refused(sandbox, {"deploy/kubernixos.nix": module(f"builtins.readFile ({expression})"), **files})
    assert (problem.subject.partition("/")[0], problem.place) == ("common", "deploy/kubernixos.nix:6")
    assert problem.fix.endswith("renderer: {type: nix, sources: [../common]}")
    found = render(sandbox, {"deploy/kubernixos.nix": module(f"builtins.readFile ({expression})"), **files}, sources=("../common",))
    assert "common" in reads(found)
    with pytest.raises(SourceRefused, match=r"nowhere: isn't in this commit; correct `sources`"):
        render(sandbox, {"deploy/kubernixos.nix": LIST}, sources=("../nowhere",))


def test_a_link_is_read_as_what_it_leads_to(sandbox: Sandbox) -> None:
    files = {"deploy/kubernixos.nix": module("builtins.readFile ./link"), "config/a.txt": "linked"}
    found = render(sandbox, files, links={"deploy/link": "../config/a.txt"})
    assert found.manifests[0].body()["data"] == {"x": "linked"}
    assert "config/a.txt" in reads(found)


def test_warnings_and_traces_are_notes(sandbox: Sandbox) -> None:
    found = render(sandbox, {"deploy/kubernixos.nix": module('builtins.trace "look at ${toString ./.}/x" "a"')})
    assert found.notes == ("nix: “look at deploy/x”",)


def test_a_path_of_the_store_is_noted(sandbox: Sandbox) -> None:
    found = render(sandbox, {"deploy/kubernixos.nix": module('"${./kubernixos.nix}"')})
    assert found.notes == ("ConfigMap/a holds a path of the Nix store, where nothing is put here",)


def test_many_objects_keep_the_order_of_their_names(sandbox: Sandbox) -> None:
    make = '{ name = "n${toString n}"; value = { kind = "ConfigMap"; apiVersion = "v1"; metadata.name = "n${toString n}"; }; }'
    found = render(
        sandbox, {"deploy/kubernixos.nix": f"{{ kubernixos.manifests = builtins.listToAttrs (builtins.genList (n: {make}) 300); }}"}
    )
    assert [each.identity.name for each in found.manifests] == sorted(f"n{number}" for number in range(300))
    assert {each.place for each in found.manifests} == {"deploy/kubernixos.nix:1"}


def test_every_object_that_cant_be_applied_is_named_with_its_line(sandbox: Sandbox) -> None:
    second = 'kubernixos.manifests.b = {\n    kind = "B"; apiVersion = "v1"; metadata = { };\n  };'
    text = f'{{\n  kubernixos.manifests.a = {{ kind = "A"; }};\n  {second}\n}}\n'
    with pytest.raises(ManifestInvalid) as caught:
        render(sandbox, {"deploy/kubernixos.nix": text})
    found = {(each.place, each.message, each.fix) for each in caught.value.problems}
    assert found == {
        ("deploy/kubernixos.nix:2", "apiVersion is missing", ""),
        ("deploy/kubernixos.nix:2", "metadata is missing", ""),
        ("deploy/kubernixos.nix:4", "metadata.name is missing", ""),
    }


def test_a_directory_of_the_operator_that_isnt_there_is_the_operators(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(RendererUnavailable, match=rf"nixPath\.nixpkgs: {path}: "):
            render(sandbox, {"deploy/kubernixos.nix": LIST}, nix_path={"nixpkgs": str(path)})


def test_the_original_s_own_evaluation_says_the_same(sandbox: Sandbox, tmp_path: Path) -> None:
    """Nix evaluates a copy of these modules by `lib.evalModules` directly, as the original does by NixOS' entry."""
    shutil.copytree(NIXPKGS, tmp_path / "nixpkgs")
    own = Path(render.__code__.co_filename).parents[3] / "handler" / "render" / "nix" / "kubernixos.nix"
    files = {"module.nix": own.read_text(), "a.nix": NAMED}
    expression = "((import ./nixpkgs/nixos/lib/eval-config.nix) { pkgs = { }; modules = [ ./module.nix ./a.nix ]; }).config.kubernixos.eval"
    blob: Any = bare(files, expression, tmp_path)
    found = render(sandbox, {"deploy/kubernixos.nix": NAMED})
    assert blob["config"]["checksum"] == found.checksum
    label = {"metadata": {"name": "development", "labels": {"kubernixos": found.checksum}}}
    assert blob["manifests"] == {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Namespace", **label}]}
    assert json.dumps(blob)
