"""Trees that programs render, pushed to a shop: kustomizations and charts, small, and what they come to in the cluster."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import yaml

from handler.model.plan import Plan
from handler.model.result import Outcome, Result
from tests.e2e.documents import Document, pods
from tests.e2e.one_target import Shop, told

Files = Mapping[str, str]
CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"


def push_files(shop: Shop, files: Files) -> str:
    """Make these files the whole of the repository and push; return the commit."""
    for each in shop.work.directory.iterdir():
        if each.name != ".git":
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    for path, text in files.items():
        shop.work.write(path, text)
    sha = shop.work.commit(f"{len(files)} files")
    shop.work.push()
    return sha


def chart(files: Files, folder: str = "deploy") -> dict[str, str]:
    """Return the files of a chart in a directory."""
    return {f"{folder}/{path}": text for path, text in {"Chart.yaml": CHART, **files}.items()}


def workload(name: str = "web", **spec: Any) -> Document:
    """A Deployment without a namespace, at nought replicas."""
    labels = {"app": name}
    body = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pods(labels, "shop:1"), **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}


def text_of(*documents: Document) -> str:
    return yaml.safe_dump_all(documents)


def unchanged(result: Result) -> Plan:
    """Return the plan of a run that had nothing to write."""
    assert result.outcome is Outcome.UNCHANGED, told(result)
    assert result.plan
    return result.plan


def names(shop: Shop, kind: str, *options: str) -> set[str]:
    """Return the names of a kind's objects in the shop's namespace; of ConfigMaps without the cluster's own."""
    found = shop.kubectl("get", kind, "-n", shop.name, *options)["items"]
    return {each["metadata"]["name"] for each in found} - {"kube-root-ca.crt"}


def get(shop: Shop, kind: str, name: str) -> Document:
    """Return a live object, with its managed fields."""
    found: Document = shop.kubectl("get", kind, name, "-n", shop.name, "--show-managed-fields")
    return found
