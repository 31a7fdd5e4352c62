"""The variables of a target, as they are written in the configuration."""

from __future__ import annotations

from handler.config.load import parse
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.settings_shape import Json
from tests.unit.config.config_mistakes import TARGET, mistakes
from tests.unit.rows import each_row


@each_row(
    ("written", "expected"),
    [
        ("substitute: {a.b: x}", "postBuild.substitute: 'a.b' is no name of a variable; write A-Z, a-z, 0-9 and _, no digit first"),
        ("substitute: {1a: x}", "'1a' is no name of a variable"),
        ("substitute: {a: 3}", 'postBuild.substitute: the value of a is no text; write a: "…", in quotes'),
        ("substitute: {a: {b: c}}", "the value of a is no text"),
        ("substituteFrom: [{kind: Service, name: x}]", "postBuild.substituteFrom[x].kind: expected one of ConfigMap, Secret"),
        ("substituteFrom: [{kind: Secret, name: x}]", "postBuild.substituteFrom is read in the target's namespace, and none is written"),
        ("substituteStrategy: Never", "expected one of Strict, WithVariables, Always"),
    ],
)
def test_what_cant_be_is_named(written: str, expected: str) -> None:
    found = mistakes(f"{TARGET}    postBuild: {{{written}}}\n")
    assert any(expected in line for line in found), found


def test_it_is_spelled_as_flux_spells_it() -> None:
    sources = "[{kind: ConfigMap, name: a}, {kind: Secret, name: b, optional: true}]"
    written = f"{{substitute: {{n: '3', b: 'true'}}, substituteFrom: {sources}}}"
    found = parse(f"{TARGET}    namespace: shop\n    postBuild: {written}\n").targets[0].post_build
    assert found
    assert found == PostBuild(Json('{"b":"true","n":"3"}'), (SubstituteFrom("ConfigMap", "a"), SubstituteFrom("Secret", "b", True)))
    assert found.values == {"n": "3", "b": "true"}
    assert parse(f"{TARGET}    postBuild: {{}}\n").targets[0].post_build == PostBuild()
