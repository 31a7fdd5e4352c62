"""What real programs make of values that aren't in git is found, wherever they put it; and what they say of them isn't shown."""

from __future__ import annotations

from typing import Any

import pytest

from handler.config.renderer_settings import ValuesFrom
from handler.model.errors import AnnealError
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.target_render import render_target
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.helm_releases import CALLED, CONFIG, Elsewhere, chart, options, sandbox

__all__ = ["sandbox"]
MAP = "templates/a.yaml"
SETTINGS = options(values_from=(ValuesFrom("Secret", "db"), ValuesFrom("ConfigMap", "db"), ValuesFrom("Secret", "db", "pw", "db.pw")))


def taken(sandbox: Sandbox, template: str, value: str = "hunter2", **request: Any) -> Rendered:
    """Render a chart of one template as a target does, with a Secret of this value and a ConfigMap."""
    objects = {
        ("Secret", "db"): {"values.yaml": f"a: {value}\n".encode(), "pw": value.encode()},
        ("ConfigMap", "db"): {"values.yaml": b"d: o\n"},
    }
    asked = RenderRequest("deploy", called=CALLED, options=SETTINGS, outside=Elsewhere(objects=objects), **request)
    return render_target(RENDERERS["helm"], FakeTree(chart({MAP: template})), asked, sandbox)


@pytest.mark.parametrize("value", ["hunter2", "true", "0", "17", "a"])
def test_each_field_that_a_chart_makes_of_a_secret_is_hidden_and_no_other(sandbox: Sandbox, value: str) -> None:
    data = (
        "data:\n  open: hunter2\n  map: {{ .Values.d | quote }}\n  whole: {{ .Values.a | quote }}\n"
        "  sum: {{ toString .Values.db.pw | sha256sum }}\n  upper: {{ toString .Values.db.pw | upper | quote }}\n"
    )
    [made] = taken(sandbox, CONFIG.format("web") + data, value).manifests
    assert made.hidden == ("/data/sum", "/data/upper", "/data/whole")
    assert made.body()["data"]["open"] == "hunter2"


def test_what_helm_says_is_told_only_as_far_as_placeholders_say_it(sandbox: Sandbox) -> None:
    def told(template: str, **request: Any) -> str:
        with pytest.raises(AnnealError) as refused:
            taken(sandbox, template, **request)
        return str(refused.value)

    assert "it is placeholder" in told('{{ fail (printf "it is %s" .Values.a) }}')
    guess = '{{ if eq .Values.a "hunter2" }}{{ fail (printf "it is %s" .Values.a) }}{{ end }}'
    said = told(guess)
    assert said.startswith("deploy: fails with the values of Secret db, and not without them")
    assert "hunter2" not in said
    assert "anneal render" in said
    assert "--show-secrets" in said
    assert "it is hunter2" in told(guess, told=True)


def test_a_chart_that_refuses_placeholders_is_rendered_and_none_of_its_fields_shown(sandbox: Sandbox) -> None:
    found = taken(sandbox, '{{ if ne .Values.a "hunter2" }}{{ fail "another" }}{{ end }}' + CONFIG.format("web") + "data: {a: b}\n")
    assert [each.hidden for each in found.manifests] == [("/data",)]
    assert any("no field is shown" in note for note in found.notes)


def test_a_render_without_any_such_value_is_one_render(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = sandbox.run, list[str]()

    def counted(function: str, *arguments: Any, **named: Any) -> Any:
        calls.append(function)
        return run(function, *arguments, **named)

    monkeypatch.setattr(sandbox, "run", counted)
    asked = RenderRequest("deploy", called=CALLED, outside=Elsewhere())
    render_target(RENDERERS["helm"], FakeTree(chart({MAP: CONFIG.format("web")})), asked, sandbox)
    assert calls.count("helm") == 1
    calls.clear()
    taken(sandbox, CONFIG.format("web"))
    assert calls.count("helm") == 3
