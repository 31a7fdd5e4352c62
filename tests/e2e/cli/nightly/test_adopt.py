"""`anneal adopt`: what would change hands is listed by owner, asked about, and taken over in one run, without a word in anneal.yaml."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping

from handler.config.load import load
from handler.config.settings_digest import settings_digest
from handler.model.names import IDENTITY, PART_OF, applyset_id, state_name
from tests.e2e.api_proxy import Wired
from tests.e2e.cli.conftest import Shop, document
from tests.e2e.documents import Document, config_map
from tests.e2e.killed_runs import is_recorded
from tests.kubectl import Kubectl
from tests.rooms.cluster.faulty_proxy import Handler
from tests.terminal import typed

FLUX = {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
HELM = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "web"}
SET, BANK = sorted((applyset_id("tools", "shop", "Secret"), applyset_id(state_name("bank"), "bank")))
OWNERS = ("--from", "flux", "--from", "helm", "--from", SET, "--from", BANK)
NAMES = ("by-flux", "by-helm", "by-set", "by-target", "by-hand")


def plant(shop: Shop, kubectl: Kubectl) -> None:
    """Let four tools and a person deploy one ConfigMap each, with a key that git lacks; git declares all five."""
    shop.work.remove("deploy")
    for name in NAMES:
        shop.work.write(f"deploy/{name}.yaml", document("ConfigMap", name, data={"key": "1"}))
    shop.push("What others have deployed")
    data = {"key": "1", "dropped": "1"}
    make(kubectl, "kustomize-controller", config_map(shop.namespace, "by-flux", data, labels=FLUX), "apply", "--server-side")
    make(kubectl, "helm", config_map(shop.namespace, "by-helm", data, annotations=HELM), "create")
    make(kubectl, "kubectl", config_map(shop.namespace, "by-set", data, labels={PART_OF: SET}), "apply", "--server-side")
    identity = {IDENTITY: f"bank:/ConfigMap:{shop.namespace}/by-target"}
    theirs = config_map(shop.namespace, "by-target", data, labels={PART_OF: BANK}, annotations=identity)
    make(kubectl, "anneal", theirs, "apply", "--server-side")
    make(kubectl, "kubectl-client-side-apply", config_map(shop.namespace, "by-hand", data), "apply")
    patch = json.dumps({"data": {"scaled": "3"}})
    kubectl.run("patch", "configmap", "by-flux", "-n", shop.namespace, "--type=merge", "-p", patch, "--field-manager=hpa")


def make(kubectl: Kubectl, manager: str, body: Document, *verb: str) -> None:
    kubectl.run(*verb, f"--field-manager={manager}", "-f", "-", given=json.dumps(body))


def live(shop: Shop, kubectl: Kubectl) -> dict[str, Document]:
    return {name: kubectl("get", "configmap", name, "-n", shop.namespace, "--show-managed-fields") for name in NAMES}


def marked(found: Mapping[str, Document]) -> set[str]:
    """Which of them are the target's."""
    marks = {name: (each["metadata"].get("annotations") or {}).get(IDENTITY, "") for name, each in found.items()}
    return {name for name, mark in marks.items() if mark.startswith("shop:")}


def test_all_owners_are_listed_and_the_printed_command_takes_over(shop: Shop, kubectl: Kubectl) -> None:
    plant(shop, kubectl)
    before, configured = live(shop, kubectl), shop.cli.config.read_text()
    shown = shop.cli("adopt", "shop").stdout
    assert live(shop, kubectl) == before
    command = f"anneal adopt shop {' '.join(OWNERS)}"
    for line in (
        "Flux Kustomization apps has 1 object  (--from flux):",
        "  first stop Flux: flux suspend kustomization apps -n flux-system",
        "    - data.dropped: 1 → (removed)  (live by kustomize-controller)",
        "    - metadata.labels.kustomize.toolkit.fluxcd.io/name: apps → (removed)  (live by kustomize-controller)",
        "    data.scaled: 3  (undeclared, by hpa; it stays)",
        "Helm release web has 1 object  (--from helm):",
        f"ApplySet {SET} has 1 object  (--from {SET}):",
        f"target bank has 1 object  (--from {BANK}):",
        "1 object of no other tool:",
        f"to take them over: {command}",
    ):
        assert line in shown.splitlines(), shown
    found = shop.cli.json("adopt", "shop", "--dry-run")
    assert (found["command"], found["problems"]) == (command, [])
    assert {each["owner"]: each["from"] for each in found["owners"]} == {
        "Flux Kustomization apps": ["flux"],
        "Helm release web": ["helm"],
        f"ApplySet {SET}": [SET],
        "target bank": [BANK],
        None: [],
    }
    shop.cli(*command.split()[1:], "-y")
    after = live(shop, kubectl)
    assert marked(after) == set(NAMES)
    for name, each in after.items():
        assert each["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert each["data"] == ({"key": "1", "scaled": "3"} if name == "by-flux" else {"key": "1"})
        assert each["metadata"]["labels"].keys() == {PART_OF}
        assert each["metadata"]["annotations"].keys() == {IDENTITY}
    assert shop.cli.config.read_text() == configured
    shop.cli("plan", "shop", "--exit-code")
    (target,) = load(shop.cli.config).targets
    record = kubectl("get", "configmap", state_name("shop"), "-n", shop.namespace)["data"]
    assert json.loads(record["applied.json"])["settings"] == settings_digest(target), "no run plans anew for the settings"
    assert "unchanged" in shop.cli("apply", "shop").stdout
    assert live(shop, kubectl) == after


def test_at_a_terminal_it_asks_once(shop: Shop, kubectl: Kubectl) -> None:
    plant(shop, kubectl)
    before = live(shop, kubectl)
    environ = {"ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig)}
    command = [sys.executable, "-m", "handler", "adopt", "shop", *OWNERS]
    for answer, ends, theirs in (("n", 1, set[str]()), ("y", 0, set(NAMES))):
        code, shown = typed(command, [("5 objects would change hands. Go on?", answer)], environ=environ)
        assert (code, shown.count("[y/N]")) == (ends, 1), shown
        assert marked(live(shop, kubectl)) == theirs
        assert answer == "y" or live(shop, kubectl) == before


def test_an_interrupted_takeover_names_the_command_that_goes_on_with_it(shop: Shop, kubectl: Kubectl, wired: Callable[[], Wired]) -> None:
    plant(shop, kubectl)
    wire, process = wired(), list[subprocess.Popen[str]]()
    environ = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(wire.kubeconfig)}
    gate = threading.Event()

    def interrupt(_handler: Handler) -> bool:
        gate.wait()
        process[0].send_signal(signal.SIGINT)
        return True

    wire.meet(1, interrupt, is_recorded)
    command = [sys.executable, "-m", "handler", "adopt", "shop", *OWNERS, "-y"]
    process.append(subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    gate.set()
    said = process[0].communicate()[1]
    (again,) = (line for line in said.splitlines() if line.startswith("what it began stays as it is; "))
    again = again.partition("; ")[2].removesuffix(" goes on with it")
    assert sorted(again.split()) == sorted(["anneal", "adopt", "shop", *OWNERS, "-y"])
    shop.cli(*again.split()[1:])
    assert marked(live(shop, kubectl)) == set(NAMES)
