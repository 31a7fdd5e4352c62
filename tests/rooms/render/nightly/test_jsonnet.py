"""Both engines make the same of the same programs, whatever of the language they use; imports, configuration, variables, reads."""

from __future__ import annotations

import pytest

from handler.render import Sandbox
from tests.rooms.render.jsonnet_programs import ENGINES, both, config, data_of, rendered
from tests.rooms.render.test_jsonnet import MAIN, sandbox  # noqa: F401 - fixtures, too

EXPRESSIONS = {
    "numbers": "{a: 0.1 + 0.2, b: 1e300, c: 12345678901234567890, d: 3.0, e: -0, f: 7 % 3, g: 1 << 40, h: 1.5e-7, i: 9007199254740993}",
    "strings": "{a: 'é\\u0041\\n', b: @'c:\\d', c: |||\n  two\n   lines\n||| + 'x', d: '%05.2f|%s|%d' % [1.5, {a: 1}, 3]}",
    "text": "{a: 'abc'[1:], b: std.split('a,b', ','), c: std.strReplace('aXa', 'X', '-'), e: std.format('%x', 255)}",
    "comprehensions": "{['k' + x]: [y for y in std.range(0, x) if y % 2 == 0] for x in [1, 2, 3]}",
    "objects": "local a = {x: 1, y:: 2, z+: {q: 1}}; {r: a + {w: super.x + 1}, f: std.objectFields(a), h: std.objectHasAll(a, 'y')}",
    "functions": "local f(x, y=x * 2) = x + y; {a: f(1), b: f(y=1, x=3), c: std.foldl(function(s, x) s + x, [1, 2], 0)}",
    "inheritance": "local base = {name: 'a', full: self.name + self.suffix, suffix: '-x'}; {o: base {name: 'b', suffix: '-y'}}",
    "asserts": "{a: {assert self.x > 0 : 'small', x: 1}}",
    "hashes": "{a: std.md5('a'), b: std.base64('e'), c: std.base64Decode('aGk=')}",
    "manifests": "{a: std.manifestYamlDoc({a: [1, {b: null}], c: 'x: y'}), b: std.manifestJsonEx({a: 1}, '  ')}",
    "ini": "{a: std.manifestIni({main: {a: '1'}, sections: {s: {b: ['x', 'y']}}})}",
    "parsed": "{b: std.parseJson('{\"a\": [1, null]}')}",
    "sets": "{a: std.set([3, 1, 3]), b: std.setUnion([1], [2]), c: std.sort([2, 1]), d: std.uniq([1, 1])}",
    "patches": "{a: std.mergePatch({a: 1, b: 2}, {b: null}), c: std.get({x: 1}, 'y', 3)}",
    "unicode keys": "{'é': 1, a: 2, Z: 3, '🎈': 4, 'a b': 5}",
    "prune": "{a: std.prune({a: null, b: [], c: {d: {}}}), b: std.deepJoin(['a', ['b']]), c: std.equals({a: 1}, {a: 1.0})}",
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_both_engines_make_the_same_values(sandbox: Sandbox, name: str) -> None:
    files = {MAIN: f"{{ apiVersion: 'example.com/v1', kind: 'Made', metadata: {{ name: 'a' }}, spec: {EXPRESSIONS[name]} }}"}
    one, other = (rendered(sandbox, files, engine) for engine in ENGINES)
    assert one.manifests[0].body() == other.manifests[0].body()
    assert one.manifests == other.manifests
    assert one.manifests[0].body()["spec"]


@both
@pytest.mark.parametrize(
    ("jpath", "wanted"), [((), "vendor"), (("one",), "one"), (("one", "two"), "two"), (("two", "one"), "one"), (("./one/",), "one")]
)
def test_the_last_directory_of_imports_is_the_first(sandbox: Sandbox, engine: str, jpath: tuple[str, ...], wanted: str) -> None:
    files = {MAIN: "import 'a.libsonnet'", **{f"{each}/a.libsonnet": config(each) for each in ("vendor", "one", "two")}}
    assert list(data_of(rendered(sandbox, files, engine, options={"jpath": jpath}))) == [wanted]
    files["deploy/lib/a.libsonnet"] = config("lib")
    assert list(data_of(rendered(sandbox, files, engine, options={"jpath": jpath}))) == ["lib" if wanted == "vendor" else wanted]
