"""What a Nix program may not do, and what it says where it fails: each with its line, in words that help, and nothing of this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.model.errors import ManifestInvalid, RenderFailed, SourceRefused
from handler.render import ProgramLimits, Sandbox
from handler.render.nix import nix_closure, nix_renderer
from tests.rooms.render.nix_modules import LIB, NAMESPACE, module, nix_tools, reads, refused, render, value

LINE = "deploy/kubernixos.nix:6"
CLOCK = "“is a clock, and the same commit must make the same objects”"
NETWORK = "“would fetch, and a render has no network”"
ELSEWHERE = "isn't of the repository, nor of a directory of nixPath"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with nix_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    "expression",
    [
        "builtins.currentTime",
        "__currentTime",
        "with builtins; currentTime",
        'builtins.${"current" + "Time"}',
        'builtins.getAttr "currentTime" builtins',
        "builtins.builtins.currentTime",
        "import ./clock.nix",
        "builtins.import ./clock.nix",
        "scopedImport { } ./clock.nix",
        "builtins.scopedImport { x = 1; } ./clock.nix",
        "(scopedImport { } ./import.nix) ./clock.nix",
        "(import ./import.nix) ./clock.nix",
    ],
)
def test_no_spelling_reads_the_clock(sandbox: Sandbox, expression: str) -> None:
    files = {"deploy/clock.nix": "builtins.currentTime", "deploy/import.nix": "import"}
    problem = refused(sandbox, {"deploy/kubernixos.nix": module(f"toString ({expression})"), **files})
    assert (problem.subject, problem.message, problem.fix) == ("currentTime", CLOCK, "write the time as text, or leave it out")
    assert problem.place.startswith("deploy/")


def test_a_module_that_the_module_system_imports_reads_no_clock_either(sandbox: Sandbox) -> None:
    files = {"deploy/kubernixos.nix": "{ imports = [ ./deep/a.nix ]; }", "deploy/deep/a.nix": module("toString builtins.currentTime")}
    assert refused(sandbox, files).message == CLOCK


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("builtins.currentSystem", "x86_64-linux"),
        ('builtins.getEnv "HOME"', ""),
        ('builtins.getEnv "PATH"', ""),
        ("builtins.pathExists /etc/hostname", ""),
        ("builtins.storeDir", "/nix/store"),
        ("builtins.length builtins.nixPath", "0"),
        ("builtins ? exec", ""),
        ("(builtins.tryEval (builtins.fetchurl { url = 1; })).success", ""),
    ],
)
def test_nothing_of_the_machine_shapes_an_object(sandbox: Sandbox, expression: str, expected: str) -> None:
    assert value(sandbox, expression) == expected


@pytest.mark.parametrize("name", ["fetchurl", "fetchTarball", "fetchGit", "fetchMercurial", "fetchTree"])
@pytest.mark.parametrize("spelling", ["builtins.{}", "(with builtins; {})"])
def test_what_fetches_is_refused_by_name(sandbox: Sandbox, name: str, spelling: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        problem = refused(sandbox, {"deploy/kubernixos.nix": module(f'{spelling.format(name)} "{url}"')})
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert (problem.subject, problem.message, problem.place) == (name, NETWORK, LINE)


@pytest.mark.parametrize(
    ("expression", "subject", "message"),
    [
        ('builtins.readFile "/etc/hostname"', "/etc/hostname", ELSEWHERE),
        ("builtins.readFile /etc/passwd", "/etc/passwd", ELSEWHERE),
        ("builtins.toJSON (builtins.readDir /.)", "/", ELSEWHERE),
        ("import /proc/self/environ", "/proc/self/environ", ELSEWHERE),
        ("builtins.readFile /dev/shm", "/dev/shm", ELSEWHERE),
        ("builtins.readFile ../../../secret", "…/secret", "leads out of the repository"),
        ("builtins.readFile ../../anneal/../own/x", "…/own/x", "leads out of the repository"),
        ("builtins.readFile ./none.txt", "deploy/none.txt", "isn't in this commit"),
        ("builtins.readFile ../absent/none.txt", "absent/none.txt", "isn't in this commit"),
        ("import <nixpkgs>", "nixpkgs", "no directory of this name is known"),
        (
            'builtins.readFile (derivation { name = "made"; system = "x86_64-linux"; builder = "/bin/sh"; })',
            "made",
            "would be built to be read here (import from derivation), and nothing is built",
        ),
        ("let f = n: 1 + f (n + 1); in toString (f 0)", "nix", "recurses without end (stack overflow)"),
        ("let x = x; in x", "nix", "“infinite recursion encountered”"),
        ("lib.nothing", "nix", "“attribute 'nothing' missing”"),
        ("nothing", "nix", "“undefined variable 'nothing'”"),
        ('1 + "a"', "nix", "“cannot add a string to an integer”"),
        ("{ a = 1 }", "nix", "“syntax error, unexpected '}', expecting ';'”"),
        ('throw "said\\nin ${toString ./x}"', "nix", "“said in deploy/x”"),
        ('abort "said"', "nix", "“evaluation aborted with the following error message: 'said'”"),
        ("assert false; 1", "nix", "“assertion 'false' failed”"),
        ("(x: x)", "nix", "“cannot convert a function to JSON”"),
    ],
)
def test_a_mistake_has_its_line_and_helps(sandbox: Sandbox, expression: str, subject: str, message: str) -> None:
    problem = refused(sandbox, {"deploy/kubernixos.nix": module(expression)})
    assert problem.message == message
    assert subject == problem.subject or subject.startswith(f"{problem.subject}/"), (
        "some versions name the first directory that isn't theirs"
    )
    assert problem.place.partition(":")[0] == "deploy/kubernixos.nix" or "recurses" in message


def test_advice_on_a_text_is_of_nix(sandbox: Sandbox) -> None:
    problem = refused(sandbox, {"deploy/kubernixos.nix": module("3")})
    assert (problem.message, problem.fix) == ("data.x is a number, not text", 'write it as text: "3", or toString value')


@pytest.mark.parametrize(
    ("text", "subject", "message"),
    [
        ("{ kubernixos.nothing = 1; }", "kubernixos.nothing", "“does not exist.”"),
        ("{ kubernixos.server = 1; }", "kubernixos.server", "“is not of type `string'.”"),
        ("{ kubernixos.manifests = [ 1 ]; }", "kubernixos.manifests", "“is not of type `attribute set'.”"),
    ],
)
def test_an_option_is_named_and_its_value_never_shown(sandbox: Sandbox, text: str, subject: str, message: str) -> None:
    problem = refused(sandbox, {"deploy/kubernixos.nix": text})
    assert (problem.subject, problem.message) == (subject, message)


def test_the_operators_expressions_are_placed_in_the_settings(sandbox: Sandbox) -> None:
    files = {"deploy/kubernixos.nix": f"{{ kubernixos.manifests = [ {NAMESPACE} ]; }}"}
    assert refused(sandbox, files, modules="[\n  wrong\n]").place == "renderer.modules:2"
    assert refused(sandbox, files, packages="\n\nwrong").place == "renderer.packages:3"


def test_a_trace_is_shown_where_it_is_asked_for(sandbox: Sandbox) -> None:
    files = {"deploy/kubernixos.nix": module("import ./b.nix"), "deploy/b.nix": "{ x = (a: a.y) { }; }.x"}
    short, long = refused(sandbox, files), refused(sandbox, files, show_trace=True)
    assert short.message == "“attribute 'y' missing”"
    assert long.message.startswith("“attribute 'y' missing” [trace: “")
    assert "(deploy/b.nix:1)" in long.message
    assert len(long.message) < 3_000


def test_the_directory_of_one_evaluation_is_in_no_object(sandbox: Sandbox) -> None:
    for expression in ("toString ./x", "toString ../..", '(builtins.unsafeGetAttrPos "a" { a = 1; }).file', "__curPos.file"):
        problem = refused(sandbox, {"deploy/kubernixos.nix": module(expression)})
        assert (problem.message, problem.place) == ("holds the path of the directory that it was evaluated in", "deploy/kubernixos.nix:4")


@pytest.mark.parametrize("text", ["/etc/passwd", "../../../../etc/passwd", "nowhere"])
def test_a_link_out_of_the_repository_is_refused_before_nix_sees_it(sandbox: Sandbox, text: str) -> None:
    with pytest.raises(SourceRefused, match="deploy/link"):
        render(sandbox, {"deploy/kubernixos.nix": module("builtins.readFile ./link")}, links={"deploy/link": text})


def test_a_link_that_an_expression_names_elsewhere_is_refused_too(sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused, match="c/link: this symbolic link"):
        render(sandbox, {"deploy/kubernixos.nix": module("builtins.readFile ../c/link")}, links={"c/link": "/etc/passwd"})


@pytest.mark.parametrize(
    ("limit", "expression", "reason"),
    [
        (
            {"memory": 128 << 20},
            "builtins.foldl' (all: n: [ all (builtins.genList (m: m) n) ]) [ ] (builtins.genList (n: n) 20000)",
            "memory",
        ),
        (
            {"cpu": 1},
            "let l = builtins.genList (n: n) 20000; sum = builtins.foldl' (a: b: a + b); in builtins.foldl' (a: _: sum a l) 0 l",
            "cpu",
        ),
        ({"seconds": 1.0}, 'builtins.match "((((a*)*)*)*)*b" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"', "timeout"),
        ({"output": 10_000}, "builtins.genList (n: 1000000) 20000", "output"),
    ],
    ids=["memory", "processor", "time", "output"],
)
def test_what_takes_too_much_is_ended(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int], expression: str, reason: str
) -> None:
    monkeypatch.setattr(nix_renderer, "LIMITS", ProgramLimits(**limit))
    with pytest.raises(RenderFailed) as caught:
        render(sandbox, {"deploy/kubernixos.nix": module(f"builtins.toJSON ({expression})")})
    assert caught.value.reason == reason
    assert "nix-instantiate" in str(caught.value)


def test_an_object_that_is_nested_too_deeply_is_refused(sandbox: Sandbox) -> None:
    expression = "builtins.foldl' (inner: _: { a = inner; }) 1 (builtins.genList (n: n) {})"
    for depth in (300, 5_000):
        problem = refused(sandbox, {"deploy/kubernixos.nix": module(expression.replace("{})", f"{depth})"))})
        assert problem.message in ("nested deeper than 200 levels", "recurses without end (stack overflow)")


def test_bytes_that_are_no_text_are_refused(sandbox: Sandbox) -> None:
    files: dict[str, str] = {"deploy/kubernixos.nix": module("builtins.readFile ./x")}
    with pytest.raises((ManifestInvalid, RenderFailed)):
        render(sandbox, {**files, "deploy/x": b"\xff\xfe"})  # type: ignore[dict-item]  # bytes where text is usual


def test_what_is_read_before_a_mistake_is_known(sandbox: Sandbox) -> None:
    files = {**LIB, "deploy/kubernixos.nix": module("import ../common/a.nix"), "common/a.nix": "nothing"}
    with pytest.raises(ManifestInvalid) as caught:
        render(sandbox, files)
    assert {path for path, _ in caught.value.basis.reads} == {"//tool/nix", "common/a.nix", "deploy", "nixpkgs"}
    fixed = render(sandbox, {**files, "common/a.nix": '"b"'})
    assert reads(fixed) == {path for path, _ in caught.value.basis.reads}


def test_git_lfs_pointers_are_refused(sandbox: Sandbox) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    problem = refused(sandbox, {"deploy/kubernixos.nix": module('"a"'), "deploy/b.nix": pointer})
    assert (problem.subject, problem.message) == ("deploy/b.nix", "is a pointer of Git LFS, which isn't fetched")


def test_nothing_is_left_in_the_operators_home(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    render(sandbox, {"deploy/kubernixos.nix": module('"${./kubernixos.nix}"')})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("said", ['"anneal: ${toString ./.}/made-up:5"', '"x\\n  at ${toString ./.}/made-up:5:1:"'])
def test_a_place_is_a_file_of_the_commit_whatever_a_program_says(sandbox: Sandbox, said: str) -> None:
    """What is made up may be of a file that was decrypted, and places are shown."""
    problem = refused(sandbox, {"deploy/kubernixos.nix": module(f"builtins.addErrorContext {said} (throw {said})")})
    assert "made-up" not in problem.place
    text = (
        '{ imports = [ { _file = toString ./. + "/made-up"; kubernixos.manifests = [ (builtins.fromJSON'
        """ ''{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'') ]; } ]; }"""
    )
    assert [each.place for each in render(sandbox, {"deploy/kubernixos.nix": text}).manifests] == ["deploy:1"]


def test_paths_that_expressions_name_are_bounded(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nix_closure, "MAX_NAMED", 20)
    files = {"deploy/kubernixos.nix": module('"a"'), "deploy/b.nix": " ".join(f"./x{number}" for number in range(30))}
    with pytest.raises(SourceRefused, match="names more than 20 paths"):
        render(sandbox, files)
