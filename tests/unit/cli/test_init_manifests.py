"""Where `anneal init` finds a checkout's manifests, and which namespaces they name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handler.cli.init_manifests import directory, manifests

OBJECT = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"
KUSTOMIZATION = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n"


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"web/service.yaml": OBJECT, ".github/dependabot.yml": "version: 2\n", "compose.yml": "services: {}\n"}, "web"),
        ({"k8s-specifications/a.yaml": OBJECT, "k8s-specifications/b/b.yml": OBJECT}, "k8s-specifications"),
        ({"apps/one/a.yaml": OBJECT, "apps/two/b.yaml": OBJECT}, "apps"),
        ({"release/a.yaml": OBJECT, "release/b.yaml": OBJECT, "docs/example.yaml": OBJECT}, "release"),
        ({"zz/a.yaml": OBJECT, "k8s/b/c.yaml": OBJECT, "zz/b.yaml": OBJECT}, "k8s"),
        ({"a.yaml": OBJECT, "more/b.yaml": OBJECT}, "."),
        ({"chart/Chart.yaml": "apiVersion: v2\nname: web\n", "chart/templates/web.yaml": OBJECT, "plain/web.yaml": OBJECT}, "plain"),
        ({"deploy/kustomization.yaml": KUSTOMIZATION, "deploy/web.yaml": OBJECT, "plain/web.yaml": OBJECT}, "plain"),
        ({"templates/web.yaml": OBJECT + "  labels: {a: {{ .Values.a }}}\n", "plain/web.yaml": OBJECT}, "plain"),
        ({"deploy/Kustomization": KUSTOMIZATION}, "deploy"),
        ({"anneal.yaml": "apiVersion: anneal.dev/v1alpha1\nkind: Config\n"}, ""),
        ({".hidden/web.yaml": OBJECT, "node_modules/a/web.yaml": OBJECT, "values.yaml": "replicas: 1\n"}, ""),
        ({"web/service.yaml": OBJECT.replace("\n", "\r\n")}, "web"),
        ({"web/service.yaml": f"\ufeff{OBJECT}"}, "web"),
        ({"web/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"}, "web"),
        ({"skaffold.yaml": OBJECT.replace("v1", "skaffold/v4"), "release/web.yaml": OBJECT}, "release"),
        ({"kind.yaml": "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n", "schema.yaml": "apiVersion: v1\nkind: A\n"}, ""),
        ({".tool.yml": OBJECT, "one.yaml": OBJECT, "apps/a/a.yaml": OBJECT, "apps/b/b.yaml": OBJECT}, "apps"),
    ],
)
def test_the_directory_that_holds_the_manifests_is_found(tmp_path: Path, files: dict[str, str], found: str) -> None:
    assert directory(written(tmp_path, files)) == found


def test_namespaces_are_those_that_objects_name_the_most_frequent_first(tmp_path: Path) -> None:
    account = "subjects:\n- kind: ServiceAccount\n  name: web\n  namespace: of-a-subject\n"
    files = {
        "a.yaml": OBJECT + '  namespace: "jobs"\n---\n' + OBJECT + "  namespace: shop\n---\n" + OBJECT + account,
        "b.yaml": OBJECT + "  namespace: shop # the shop's\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: jobs\n",
        "four.yaml": "apiVersion: v1\nkind: A\nmetadata:\n    labels:\n        namespace: no\n    namespace: shop\n",
        "flow.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {namespace-of: b}, namespace: shop}\n",
        "c.yaml": OBJECT + "  namespace: {{ .ns }}\n",
    }
    found = manifests(written(tmp_path, files))
    assert (found.namespaces, set(found.declared)) == (("shop", "jobs"), {"jobs"})


def test_a_directory_without_manifests_or_none_at_all_says_nothing(tmp_path: Path) -> None:
    assert manifests(written(tmp_path, {"a.yaml": "a: 1\n"})).namespaces == ()
    assert manifests(tmp_path / "gone").namespaces == ()


def test_a_pipe_a_terminal_and_a_broken_link_are_no_manifests_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").symlink_to("/dev/tty")
    (tmp_path / "c.yaml").symlink_to(tmp_path / "gone")
    assert directory(tmp_path) == ""
