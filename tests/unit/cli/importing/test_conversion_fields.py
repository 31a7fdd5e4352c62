"""Each field that the newest CRDs know has a row: import doesn't call it unknown."""

from __future__ import annotations

from typing import Any

import pytest

from handler.cli.importing.conversion import convert
from handler.cli.importing.custom_resource import CustomResource
from tests.unit.cli.importing.crd_fields import FIELDS
from tests.unit.cli.importing.custom_resources import ARGOCD, HELM, KUSTOMIZE, SOURCE, app, chart, git, ks, made, release, repo, unsaid
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

BESIDE: dict[str, list[Any]] = {
    "Kustomization": [git()],
    "HelmRelease": [git(), repo()],
    "GitRepository": [ks()],
    "HelmRepository": [git(), release()],
    "OCIRepository": [git(), release(chart=None, chartRef={"kind": "OCIRepository", "name": "web"})],
    "HelmChart": [git(), repo(), release(chart=None, chartRef={"kind": "HelmChart", "name": "web"})],
    "Application": [],
}
OCI: dict[str, Any] = {"url": "oci://ghcr.io/acme/web", "ref": {"tag": "1.2.3"}}
WHOLE = {
    "Kustomization": ks(),
    "HelmRelease": release(),
    "GitRepository": git(),
    "HelmRepository": repo(),
    "OCIRepository": made(SOURCE, "OCIRepository", "web", OCI),
    "HelmChart": made(SOURCE, "HelmChart", "web", chart()["spec"]),
    "Application": app(),
}
ROWS = [(kind, field) for kind, fields in FIELDS.items() for field in fields.split()]


def written(spec: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a spec with a text in a field that it doesn't have."""
    name, _, rest = field.partition(".")
    key = name.removesuffix("[]")
    held = spec.get(key)
    inner = held[0] if isinstance(held, list) and held else held
    value = written(inner if isinstance(inner, dict) else {}, rest) if rest else inner if inner is not None else "x"
    return {**spec, key: [value] if name.endswith("[]") else value}


@each_row(("kind", "field"), ROWS)
def test_a_field_is_known(kind: str, field: str) -> None:
    subject = CustomResource({**WHOLE[kind], "spec": written(WHOLE[kind]["spec"], field)}, "in.yaml")
    found = convert([subject, *(CustomResource(each, "in.yaml") for each in BESIDE[kind])])
    assert unsaid(found) == []
    assert [note.field for note in subject.notes if "doesn't know this field" in note.text] == []


def test_versions_of_a_group_are_one_kind() -> None:
    old = {
        HELM: "helm.toolkit.fluxcd.io/v2beta1",
        KUSTOMIZE: "kustomize.toolkit.fluxcd.io/v1beta2",
        SOURCE: "source.toolkit.fluxcd.io/v1beta2",
    }
    for documents in ([git(), ks()], [git(), repo(), release()]):
        found = convert([CustomResource({**each, "apiVersion": old[each["apiVersion"]]}, "in.yaml") for each in documents])
        assert len(found.targets) == 1
    assert ARGOCD not in old
