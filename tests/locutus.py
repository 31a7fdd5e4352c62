"""What the document of Locutus shows, the same in both its generations: its command lines, and its example of a Rollout."""

from __future__ import annotations

from pathlib import Path

SEED = Path(__file__).resolve().parents[2] / "shared" / "seeds" / "locutus.txt"
"""The document, where it lies beside the checkout."""
DIRECTORY, FILE, KEY = "example/files/manifests/", "example/files/rollout.yaml", "grafana/deployment.json"
_FILES = f"locutus --kubeconfig $KUBECONFIG --renderer=file --renderer.file.dir={DIRECTORY} --renderer.file.rollout={FILE}"
_JSONNET = "locutus --kubeconfig $KUBECONFIG --renderer=jsonnet --renderer.jsonnet.entrypoint=example"
_CRD = "jsonnet-with-crd-as-config"
RENDERED = f"{_FILES} --trigger=oneoff --render-only"
ONCE = f"{_FILES} --trigger=oneoff"
STAYING = f"{_FILES} --trigger=interval"
PROGRAMS = (
    f"{_JSONNET}/jsonnet/main.jsonnet --trigger=oneoff --render-only",
    f"{_JSONNET}/jsonnet-with-config/main.jsonnet --trigger=oneoff --config-file=example/jsonnet-with-config/config.json --render-only",
)
"""Those of the renderer jsonnet."""
CONFIG = f"example/{_CRD}/config.yaml"
CUSTOM = f"{_JSONNET}/{_CRD}/main.jsonnet --trigger=resource --trigger.resource.config={CONFIG}"
"""That of the resource trigger, and its file."""
ROLLOUT = f"""\
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata:
  name: grafana-rollout-0
spec:
  groups:
  - steps:
    - object: "{KEY}"
      action: "CreateOrUpdate"
"""
