"""The law of imports, as data: the rooms of `handler` in their layers, and the libraries that each of them may import."""

from __future__ import annotations

ADAPTERS = {"triggers", "source", "render", "cluster", "state", "queues", "prometheus", "aws", "feedback"}
LAYERS: tuple[set[str], ...] = (
    {"model"},
    {"config"},
    ADAPTERS | {"health"},
    {"rollout"},
    {"plan"},
    {"engine.health"},
    {"engine.planner"},
    {"engine.run"},
    {"engine.apply"},
    {"engine.waits"},
    {"engine.rollout_runner"},
    {"engine"},
    {"app"},
    {"inspect"},
    {"web", "worker"},
    {"library"},
    {"functions"},
    {"cli"},
    {"wsgi", "__main__"},
)
"""The lowest first. A module imports its own room and rooms of lower layers; rooms of one layer never import each other."""
PURE = {"model", "health", "rollout", "plan"}
"""Pure rooms: they import no adapter, though one lies lower."""
VENDORS = {
    "model": {"yaml"},  # settings that are advised, loaded by the first of them
    "config": {"cel_expr_python", "re2", "yaml"},
    "source": {"cryptography", "dulwich", "urllib3", "paramiko", "jwt", "pysequoia", "semantic_version"},
    "triggers": {"standardwebhooks"},
    "feedback": {"prometheus_client"},
    "render": {"_jsonnet", "pyrage", "yaml"},  # pyrage: age, which SOPS wraps data keys by; _jsonnet: jsonnet, in the child
    "plan": {"jsonschema"},
    "cluster": {"kubernetes", "urllib3", "yaml"},  # yaml: kubeconfigs
    "queues": {"botocore"},
    "prometheus": {"urllib3"},
    "aws": {"botocore"},
    "web": {"flask", "gunicorn", "werkzeug", "yaml", *("authlib", "itsdangerous", "jinja2", "joserfc", "urllib3")},  # the latter: the page
    "cli": {"click", "rich", "yaml", "urllib3"},  # yaml: what render and rbac print; urllib3: replay speaks to a running server
    "functions": {"apig_wsgi", "flask"},
}
