"""Many targets of one repository share a chart: a push that changes the values of one renders one, the others record the commit."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handler.app.build import Handler, Options
from handler.config.renderer_settings import RendererSettings
from handler.config.secrets import Secrets
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.result import Outcome
from handler.render.helm.helm_renderer import HelmRenderer
from tests.e2e.one_target import STATES, Shop
from tests.e2e.rendered_trees import chart, push_files

TARGETS = 50
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {value: {{ .Values.value | quote }}}\n"


@pytest.fixture
def renders(monkeypatch: pytest.MonkeyPatch, renderers: Path) -> Counter[str]:
    """How often each target was rendered."""
    seen: Counter[str] = Counter()
    real = HelmRenderer.render

    def render(self: HelmRenderer, tree: Any, request: Any, sandbox: Any) -> Any:
        seen[request.called.name] += 1
        return real(self, tree, request, sandbox)

    monkeypatch.setattr(HelmRenderer, "render", render)
    return seen


def outcomes(shop: Shop, settings: Settings) -> Counter[Outcome]:
    """Run every target, as a push does, in a process of its own."""
    handler = Handler(settings, Secrets(), shop.sandbox, {}, Options(kubeconfig=str(shop.kubectl.kubeconfig)))
    jobs = [Job(target.name, "push") for target in settings.targets]
    with ThreadPoolExecutor(4) as pool:
        return Counter(result.outcome for result in pool.map(handler.run, jobs))


def test_a_changed_values_file_of_one_of_fifty_targets_is_one_render(shop: Shop, renders: Counter[str]) -> None:
    names = [f"{shop.name}-{number}" for number in range(TARGETS)]
    files = chart({"templates/map.yaml": MAP}) | {f"values/{name}.yaml": "value: 1\n" for name in names}
    push_files(shop, files)
    one = replace(shop.target, namespace=shop.name, namespaces=(shop.name,))
    targets = (replace(one, name=name, renderer=RendererSettings(values_files=(f"../values/{name}.yaml",))) for name in names)
    settings = Settings(targets=tuple(targets), state_namespace=STATES)
    assert outcomes(shop, settings) == {Outcome.APPLIED: TARGETS}
    assert renders == Counter(names)
    renders.clear()
    push_files(shop, files | {f"values/{names[7]}.yaml": "value: 2\n"})
    assert outcomes(shop, settings) == {Outcome.APPLIED: 1, Outcome.UNCHANGED: TARGETS - 1}
    assert renders == {names[7]: 1}
    found = shop.kubectl("get", "configmaps", "-n", shop.name)["items"]
    values = {each["metadata"]["name"]: each["data"]["value"] for each in found if each["metadata"]["name"] in names}
    assert values == {**dict.fromkeys(names, "1"), names[7]: "2"}
