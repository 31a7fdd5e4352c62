"""Every import of a program is found, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from handler.model.errors import Problem
from handler.render.frames import encode
from handler.render.jsonnet.import_lexer import Import, decode_imports, encode_imports, imports, literal

pytestmark = pytest.mark.slow

PROGRAM = """local a = import 'a"b.libsonnet'; // import 'no'
# import "no"
/* import 'no' * / */
{ b: importstr "x\\u0041/y", c: importbin @'c:\\d''e', d: "import 'no'", reimport: 1, importx: 'no',
  e: |||
    import 'no'
     "not closed

    more
  |||, f: (import /* a comment */
  'f'), g: |||
    z
   ||| + import "g", h: import x + 'no', i: |||-
\tqq
||| + import 'i', j: @"import ""no"" " + @'a', k: 'it\\'s import "no"' }
"""


def test_imports_are_found_with_kind_path_and_line() -> None:
    assert list(imports(PROGRAM)) == [
        Import("import", 'a"b.libsonnet', 1),
        Import("importstr", "xA/y", 4),
        Import("importbin", "c:\\d'e", 4),
        Import("import", "f", 10),
        Import("import", "g", 13),
        Import("import", "i", 15),
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("'a'", "a"),
        ('"a\\"b"', 'a"b'),
        ("'\\\\ \\/ \\b\\f\\n\\r\\t'", "\\ / \b\f\n\r\t"),
        ("'\\ud83d\\ude00'", "😀"),
        ("'\\ud83d'", "\ufffd"),
        ("@'a''b\\n'", "a'b\\n"),
        ('@"a""b"', 'a"b'),
    ],
)
def test_a_literal_is_read_as_jsonnet_reads_it(text: str, meant: str) -> None:
    assert literal(text) == meant


@pytest.mark.parametrize(
    "piece", ['"', "'\\", "/*", "import ", "|||\n ", "|||\n a\n", "import /*", "@'", "|||\n\n", "import #\n", "import '", "|||-\n\t\n"]
)
def test_no_text_takes_more_than_linear_time(piece: str) -> None:
    """A quadratic scan of so much would take hours: the timeout of the suite ends it."""
    assert len(list(imports(piece * 200_000 + "import 'x'"))) <= 200_001


def test_the_wire_is_read_strictly() -> None:
    found = [Import("import", "a", 1)]
    assert decode_imports(encode_imports(3, found)) == (3, found)
    assert decode_imports(encode(Problem("a", "b"))) == Problem("a", "b")
    for wrong in (b"I[1]", b'I[1, [["exec", "a", 1]]]', b'I[1, [["import", 1, 1]]]', b'I[1, [["import", "a"]]]', b"I{", b"X"):
        with pytest.raises(ValueError, match=r"."):
            decode_imports(wrong)
