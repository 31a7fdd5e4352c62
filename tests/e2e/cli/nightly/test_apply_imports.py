"""What `apply -f` loads: a directory outside a repository needs no git, a certificate or a token no vendor's client."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl
from tests.unit.cli.loaded import loaded, of_vendors

NEEDED = {"urllib3", "yaml"}
"""The way to the cluster, and kubeconfigs."""


def flags(shop: Shop, directory: Path) -> tuple[str, ...]:
    return ("apply", "-f", str(directory), "--name", "plain", "-n", shop.namespace, "--state-namespace", shop.namespace, "-y")


def plain(place: Path, value: str = "1") -> Path:
    place.mkdir(exist_ok=True)
    (place / "cm.yaml").write_text(document("ConfigMap", "plain", data={"value": value}))
    return place


def environ(shop: Shop, kubeconfig: Path | None = None) -> dict[str, str]:
    return {"KUBECONFIG": str(kubeconfig or shop.cli.kubeconfig)}


def test_a_plain_directory_needs_neither_git_nor_a_vendors_client(shop: Shop, tmp_path: Path) -> None:
    for value in ("1", "1", "2"):  # created, unchanged, changed
        modules = loaded(tmp_path, *flags(shop, plain(tmp_path / "plain", value)), environ=environ(shop))
        assert of_vendors(modules) == NEEDED


def test_an_unchanged_directory_loads_nothing_that_writes(shop: Shop, tmp_path: Path) -> None:
    asked = flags(shop, plain(tmp_path / "plain"))
    writes = {"handler.engine.apply.apply", "handler.engine.rollout_runner.runner", "handler.engine.waits.wait"}
    assert writes <= loaded(tmp_path, *asked, environ=environ(shop))
    heavy = ("handler.triggers", "handler.prometheus", "handler.source.git_host", *writes)
    assert not {name for name in loaded(tmp_path, *asked, environ=environ(shop)) if name.startswith(heavy)}


def test_a_token_needs_no_vendors_client(shop: Shop, tmp_path: Path, kubectl: Kubectl) -> None:
    kubectl.run("create", "serviceaccount", "start", "-n", shop.namespace)
    account = f"--serviceaccount={shop.namespace}:start"
    kubectl.run("create", "clusterrolebinding", f"start-{shop.namespace}", "--clusterrole=cluster-admin", account)
    kubectl.judges(f"{shop.namespace}/start", verb="patch", resource="configmaps", namespace=shop.namespace)
    token = kubectl.run("create", "token", "start", "-n", shop.namespace).strip()
    found = yaml.safe_load(shop.cli.kubeconfig.read_text())
    found["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(found))
    assert of_vendors(loaded(tmp_path, *flags(shop, plain(tmp_path / "plain")), environ=environ(shop, kubeconfig))) == NEEDED
