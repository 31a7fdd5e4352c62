"""What a program may not do, and what ends one: nothing of the machine is read, each mistake has its line, the worker goes on."""

from __future__ import annotations

import pytest

from handler.model.errors import RenderFailed
from handler.render import Sandbox
from tests.rooms.render.jsonnet_programs import LIBRARY, config, data_of, refused, rendered
from tests.rooms.render.test_jsonnet_refusals import MAIN, sandbox  # noqa: F401 - fixtures, too


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ("local f(x) = f(x + 1) tailstrict; f(0)", "cpu timeout", "several times as long as its program"),
        ("local s(n) = if n == 0 then 'xxxxxxxx' else local h = s(n - 1); h + h; std.length(s(29))", "crash", "needs more memory"),
    ],
)
def test_what_ends_the_child_is_named_and_the_next_render_works(sandbox: Sandbox, text: str, reason: str, said: str) -> None:
    with pytest.raises(RenderFailed) as caught:
        rendered(sandbox, {MAIN: text}, LIBRARY)
    assert caught.value.reason in reason.split()  # a busy machine gives it less than its processor time
    assert said in str(caught.value)
    assert caught.value.problems[0].subject == MAIN
    assert list(data_of(rendered(sandbox, {MAIN: config("a")}, LIBRARY))) == ["a"]


def test_a_chain_of_imports_has_an_end(sandbox: Sandbox) -> None:
    files = {f"deploy/{n}.libsonnet": f"import '{n + 1}.libsonnet'" for n in range(300)}
    (problem,) = refused(sandbox, {MAIN: "import '0.libsonnet'", **files})
    assert "more than 200 files, one after the other" in problem.message
