"""What a program may not do, and what ends one: nothing of the machine is read, each mistake has its line, the worker goes on."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from handler.config.renderer_settings import JSONNET
from handler.model.errors import Problem, RendererUnavailable
from handler.render import Sandbox, SandboxLimits, render_tools
from handler.render.conversation import Conversation
from handler.render.jsonnet import jsonnet_imports
from handler.render.jsonnet.import_lexer import MAX_IMPORTS, Import, decode_imports
from handler.render.programs import program_supervisor
from tests.patience import PATIENCE
from tests.rooms.render.jsonnet_programs import LIBRARY, PROGRAM, as_json, both, config, data_of, refused, rendered, where
from tests.rooms.render.kustomize_trees import public_tools

MAIN = "deploy/main.jsonnet"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox(limits=SandboxLimits(cpu=10, seconds=PATIENCE, output=20_000_000)) as sandbox:
        yield sandbox


@both
@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("importstr '/etc/hostname'", "is a path of a machine"),
        ("import '//entry'", "is a path of a machine"),
        ("importstr '../../../../../../etc/hostname'", "leads out of the repository"),
        ("importbin @'/etc/hostname'", "is a path of a machine"),
        ("importstr 'https://example.com/a.libsonnet'", "is fetched from elsewhere"),
        ("import 'a\\u0000b'", "is a path of a machine"),
    ],
)
def test_an_import_that_isnt_the_trees_is_refused_with_its_line_even_where_it_isnt_evaluated(
    sandbox: Sandbox, engine: str, text: str, seen: str
) -> None:
    (problem,) = refused(sandbox, {MAIN: f"{{\n unused::\n  {text}, a: {config('a')} }}"}, engine)
    assert problem.place == f"{MAIN}:3"
    assert problem.message.startswith(seen)


@both
@pytest.mark.parametrize("text", ["/etc/hostname", "../../../../etc/hostname", "../deploy/loop.txt", "../../proc/self/environ"])
def test_a_link_that_leads_elsewhere_is_refused(sandbox: Sandbox, engine: str, text: str) -> None:
    (problem,) = refused(sandbox, {MAIN: "importstr 'loop.txt'"}, engine, links={"deploy/loop.txt": text})
    assert problem.place == f"{MAIN}:1"
    assert "symbolic link" in problem.message


@both
def test_no_file_passes_for_the_configuration(sandbox: Sandbox, engine: str) -> None:
    files = {MAIN: "\nimport './generic-operator/config'", "deploy/generic-operator/config": "{}"}
    (problem,) = refused(sandbox, files, engine)
    assert (problem.place, problem.message) == (f"{MAIN}:2", "isn't the configuration, but is called like it")
    (problem,) = refused(sandbox, {MAIN: files[MAIN]}, engine)
    assert problem.fix.startswith("import 'generic-operator/config'")


@both
@pytest.mark.parametrize("name", [".anneal-jsonnet", ".anneal-jsonnet/generic-operator", ".anneal-jsonnet/strings/0"])
def test_values_lie_where_no_file_of_a_commit_is(sandbox: Sandbox, engine: str, name: str) -> None:
    files = {MAIN: config("a", f"{{ b: importstr '../{name}' }}"), name: "the commit's"}
    found = data_of(rendered(sandbox, files, engine, options={"ext_vars": as_json('{"v": "the target\'s"}')}))
    assert found == {"a": {"b": "the commit's"}}


@both
@pytest.mark.parametrize("number", ["1e999", "-1e999", "std.pow(-1, 0.5)", "std.log(0)"])
def test_a_number_that_json_cant_say_is_the_authors_mistake(sandbox: Sandbox, engine: str, number: str) -> None:
    (problem,) = refused(sandbox, {MAIN: f"{config('a')} + {{ spec: {number} }}"}, engine)
    assert problem.place.startswith(MAIN)


def test_more_imports_than_a_program_may_have_never_reach_the_worker(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def decoded(frame: bytes) -> tuple[int, list[Import]] | Problem:
        found = decode_imports(frame)
        seen.append(len(found[1]) if isinstance(found, tuple) else 0)
        return found

    monkeypatch.setattr(jsonnet_imports, "decode_imports", decoded)
    many = "[" + "import 'a'," * 40_000 + "]"
    both = "[import 'b.libsonnet', import 'c.libsonnet']"
    (problem,) = refused(sandbox, {MAIN: both, "deploy/b.libsonnet": many, "deploy/c.libsonnet": many})
    assert "one of more than 50,000 imports" in problem.message
    assert sum(seen) == 2 + MAX_IMPORTS + 1


@pytest.mark.parametrize("limit", ["MAX_TEXT", "MAX_SECONDS"])
def test_looking_imports_up_has_an_end(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    files = {MAIN: "[import 'a.libsonnet', importstr 'b']", "deploy/a.libsonnet": config("a"), "deploy/b": "b"}
    monkeypatch.setattr(jsonnet_imports, limit, 0)
    (problem,) = refused(sandbox, files)
    assert (problem.subject, problem.place) == ("a.libsonnet", f"{MAIN}:1")
    assert "too many imports" in problem.message


@both
def test_a_missing_import_is_a_mistake_once_it_is_evaluated(sandbox: Sandbox, engine: str) -> None:
    files = {MAIN: f"{{ unused:: import 'no.libsonnet', a: {config('a')} }}"}
    assert list(data_of(rendered(sandbox, files, engine))) == ["a"]
    (problem,) = refused(sandbox, {MAIN: "{ a:\n import 'no.libsonnet' }"}, engine)
    assert (problem.subject, problem.place) == ("no.libsonnet", f"{MAIN}:2")
    assert "looked for at deploy/no.libsonnet, deploy/lib/no.libsonnet, lib/no.libsonnet, deploy/vendor/no.libsonnet" in problem.message
    assert "jb install" in problem.fix
    (problem,) = refused(sandbox, {MAIN: "import 'sub'", "deploy/sub/a": "x"}, engine)
    assert problem.message.startswith("is a directory")


@both
@pytest.mark.parametrize(
    ("text", "place", "seen"),
    [
        ("{ a: import 'x.libsonnet' }", "deploy/x.libsonnet:2", "no such region"),
        ("{\n a: import 'broken.libsonnet' }", "deploy/broken.libsonnet:2", ""),
        ("local f(x) = f(x + 1);\nf(0)", f"{MAIN}:1", "recurses deeper than 500 calls"),
        ("{ a:\n  std.extVar('HOME') }", f"{MAIN}:2", "external variable HOME isn't set"),
        ("local x = std.native('exec')('id'); x", MAIN, "null"),
        ("{ assert false : 'not allowed', a: 1 }", f"{MAIN}:1", "not allowed"),
        ("function(name) name", MAIN, "argument name isn't given"),
        ("{ a: importstr std.extVar('x') }", MAIN, "an import is computed"),
        ("{ a: { b: 3 } }", MAIN, "is a number"),
        ("{ a: function(x) x }", MAIN, "is a function"),
        ("'just text'", MAIN, "is text"),
    ],
)
def test_a_mistake_has_its_line_and_words_that_help(sandbox: Sandbox, engine: str, text: str, place: str, seen: str) -> None:
    files = {MAIN: text, "deploy/x.libsonnet": "\nerror 'no such region'", "deploy/broken.libsonnet": "{\n a: 1 + + }"}
    (problem,) = refused(sandbox, files, engine)
    assert f"{problem.place}:".startswith(f"{place}:")
    assert seen in problem.message
    assert tempfile.gettempdir() not in str(problem)


@both
def test_a_mistake_of_an_operator_has_its_line_and_of_the_program_its_path_in_the_output(sandbox: Sandbox, engine: str) -> None:
    (problem,) = refused(sandbox, {MAIN: "local c = {};\n{ a: c.name }"}, engine)
    assert (problem.place, problem.subject) == (f"{MAIN}:2:6", "$.a" if engine == PROGRAM else MAIN)


def test_an_output_without_end_is_refused(sandbox: Sandbox) -> None:
    text = f"local long = std.join('', std.makeArray(20000, function(i) '{'x' * 50}')); {{ ['k%d' % i]: "
    text += config("a", "{ text: long }") + " { metadata+: { name: 'a%d' % i } } for i in std.range(1, 30) }"
    (problem,) = refused(sandbox, {MAIN: text})
    assert problem.message == "the render child made more than 20,000,000 bytes of output"


def test_files_that_import_each_other_end(sandbox: Sandbox) -> None:
    files = {MAIN: "import 'a.libsonnet'", "deploy/a.libsonnet": "import 'b.libsonnet'", "deploy/b.libsonnet": "import 'a.libsonnet'"}
    (problem,) = refused(sandbox, files)
    assert problem.message
    lazy = {MAIN: "local b = import 'b.libsonnet'; b.x { metadata+: { name: b.y } }"}
    lazy["deploy/b.libsonnet"] = f"local m = import 'c.libsonnet'; {{ x: {config('a')}, y: m.z, w: 'w' }}"
    lazy["deploy/c.libsonnet"] = "local b = import 'b.libsonnet'; { z: b.w }"
    assert list(data_of(rendered(sandbox, lazy))) == ["w"]


@both
def test_bytes_that_are_no_text_are_imported(sandbox: Sandbox, engine: str) -> None:
    files: dict[str, str | bytes] = {MAIN: config("a", "{ b: std.toString(importbin 'b') }"), "deploy/b": b"\xff\x00"}
    assert data_of(rendered(sandbox, files, engine)) == {"a": {"b": "[255, 0]"}}


def test_a_pointer_of_lfs_is_named_with_the_import(sandbox: Sandbox) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 1\n"
    (problem,) = refused(sandbox, {MAIN: "\nimport 'a.json'", "deploy/a.json": pointer})
    assert (problem.place, problem.message) == (f"{MAIN}:2", "is a pointer of Git LFS, which isn't fetched")


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"entrypoint": "other.jsonnet"}, "deploy/other.jsonnet: isn't in commit"),
        ({"entrypoint": "../../main.jsonnet"}, "leads out of the repository"),
        ({"jpath": ("../../lib",)}, "leads out of the repository"),
        ({"config_file": "none.yaml"}, "deploy/none.yaml: isn't in commit"),
        ({"config_file": "two.yaml"}, "holds 2 documents; one is read"),
        ({"config_file": "broken.yaml"}, "deploy/broken.yaml:1"),
    ],
)
def test_options_that_lead_nowhere(sandbox: Sandbox, options: dict[str, object], seen: str) -> None:
    files = {MAIN: config("a"), "deploy/two.yaml": "a: 1\n---\nb: 1\n", "deploy/broken.yaml": "a: b: c\n"}
    assert seen in "\n".join(map(str, refused(sandbox, files, options=options)))


def test_a_rollout_of_the_target_and_one_of_the_program_are_a_mistake(sandbox: Sandbox) -> None:
    rollout = "{ apiVersion: workflow.kubernetes.io/v1alpha1, kind: Rollout, metadata: {name: r}, spec: {groups: []} }"
    made = f"{{ objects: {{ a: {config('a')} }}, rollout: std.parseYaml('{rollout}') }}"
    assert rendered(sandbox, {MAIN: made}).rollout is not None
    (problem,) = refused(sandbox, {MAIN: made, "r.yaml": rollout}, more={"rollout": "r.yaml"})
    assert problem.place == f"{MAIN}:$.rollout"


@pytest.mark.parametrize("why", ["absent", "walls"])
def test_where_the_program_cant_run_the_library_evaluates_and_is_what_was_read(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def refuse(self: Conversation, decode: Any) -> list[Any]:
        if self.request.program:
            self._judge_program(self.request.program, program_supervisor.WALLS)
        return run(self, decode)

    run = Conversation.run
    if why == "walls":
        monkeypatch.setattr(Conversation, "run", refuse)
    by_program, by_library = f"//tool/{JSONNET}", f"//tool/{render_tools.LIBRARY}"
    reads = dict(rendered(sandbox, {MAIN: config("a")}, LIBRARY if why == "absent" else PROGRAM).reads.paths)
    assert (by_program in reads, reads[by_library]) == (False, render_tools.digest(render_tools.LIBRARY))
    monkeypatch.undo()
    reads = dict(rendered(sandbox, {MAIN: config("a")}).reads.paths)
    assert (by_library in reads, reads[by_program]) == (False, render_tools.digest(JSONNET))


@pytest.mark.parametrize("call", ["std.parseYaml('a: 1')", "std['parse' + 'Yaml']('a: 1')", "(import 'yaml.libsonnet')(std)"])
def test_what_the_library_would_read_otherwise_is_refused_where_it_is_called(sandbox: Sandbox, call: str) -> None:
    files = {MAIN: "(import 'a.libsonnet') { data+: { t: importstr 'b.txt' } }", "deploy/b.txt": "std.parseYaml"}
    files["deploy/yaml.libsonnet"] = "function(s) s.parseYaml('a: 1')"
    (problem,) = refused(sandbox, {**files, "deploy/a.libsonnet": f"\n{config('a', call)}"}, LIBRARY)
    assert problem.place.startswith("deploy/yaml.libsonnet:1:13" if "import" in call else "deploy/a.libsonnet:2:")
    assert ("std.parseYaml is refused" in problem.message, "sandbox: weak" in problem.fix) == (True, True)
    uncalled = config("a", f"{{ f:: function(x) {call}, a: 'std.parseYaml', n: std.thisFile, c: importstr 'yaml.libsonnet' }}")
    found = rendered(sandbox, {**files, "deploy/a.libsonnet": f"// std.parseYaml\n{uncalled}", "deploy/yaml.libsonnet": "1"}, LIBRARY)
    assert data_of(found)["a"] == {"a": "std.parseYaml", "n": "deploy/a.libsonnet", "c": "1", "t": "std.parseYaml"}


def test_a_program_that_is_imported_as_a_text_too_may_not_name_it(sandbox: Sandbox) -> None:
    files = {MAIN: config("a", "{ a: importstr 'a', b: import 'a' }"), "deploy/a": "'%s' % [std.thisFile]"}
    assert data_of(rendered(sandbox, files, LIBRARY))["a"] == {"a": files["deploy/a"], "b": "deploy/a"}
    (problem,) = refused(sandbox, {**files, "deploy/a": "std.parseYaml"}, LIBRARY)
    assert (problem.subject, problem.message.startswith("is imported as a text, too")) == ("deploy/a", True)


@both
@pytest.mark.parametrize("text", ["[1, 2].a", "{ a: 1 + + }", "error 'x'"])
def test_a_mistake_in_the_first_line_has_its_column(sandbox: Sandbox, engine: str, text: str) -> None:
    (problem,) = refused(sandbox, {MAIN: f"  {text}"}, engine)
    assert problem.place == f"{MAIN}:1:{14 if '+' in text else 3}"


def full() -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def too_old(_name: str, path: str) -> str:
    return "jsonnet 0.10.0" if path.endswith("jsonnet") else ""


@pytest.mark.parametrize("why", ["its directory is full", "too old"])
def test_what_else_keeps_the_program_from_running_is_said_and_no_other_engine_renders(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """A machine's trouble of one day makes no other objects."""
    if why == "its directory is full":
        monkeypatch.setattr(sandbox._places, "one", full)
    else:
        render_tools._known.cache_clear()
        monkeypatch.setattr(render_tools, "_version", too_old)
    with pytest.raises(RendererUnavailable) as caught:
        rendered(sandbox, {MAIN: config("a")})
    render_tools._known.cache_clear()
    wanted = {"its directory is full": "No space left", "too old": "0.20.0 or newer is needed"}
    assert wanted[why] in str(caught.value)


def test_where_there_is_no_library_either_the_programs_absence_is_said(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Linux on ARM, for which Google publishes none."""
    monkeypatch.setattr(render_tools, "_library", lambda: "")
    with pytest.raises(RendererUnavailable, match="isn't installed here"):
        rendered(sandbox, {MAIN: config("a")}, LIBRARY)


def test_the_digest_of_an_engine_that_isnt_here_is_empty(sandbox: Sandbox) -> None:
    """So that a record of another engine is rendered anew, and no run fails for it."""
    assert render_tools.digest("rjsonnet") == ""
    with where(LIBRARY):
        assert render_tools.digest(JSONNET) == ""
        with pytest.raises(RendererUnavailable):
            render_tools.digest("helm")


def test_a_variable_isnt_said_where_it_is_wrong(sandbox: Sandbox) -> None:
    (problem,) = refused(sandbox, {MAIN: "std.extVar('v') + 1 + {}.a"}, options={"ext_vars": as_json('{"v":"canary-77"}')})
    assert "canary-77" not in str(problem)
