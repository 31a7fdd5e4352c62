"""What the model deploys: three targets of one repository, the objects each may declare, and who else is in their namespaces.

`front` and `back` share a namespace, and what moves between them; `back` waits for approval when more than one object would go, and `side`
declares a Namespace with what is in it, and may prune it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from handler.config.git_settings import Repository
from handler.config.settings import HoldAbove, Prune, RecreateSettings, Settings, Target
from handler.model.names import Identity, applyset_id, identity_of, state_name
from handler.plan.inventory import Membership, TargetMarks

STATES = "anneal-system"
REPOSITORY = Repository("https://git.example.com/acme/shop.git")
SECRET = "canary-q7Zt-value"
LEASE = 15.0
SETTINGS = Settings(
    targets=(
        Target("front", REPOSITORY, ("front", "shared"), path="front"),
        Target("back", REPOSITORY, ("back", "shared"), path="back", prune=Prune(hold_above=HoldAbove(1, 0.2))),
        Target(
            "side",
            REPOSITORY,
            ("side", "annex"),
            path="side",
            cluster_scoped=("Namespace",),
            prune=Prune(kinds=("Namespace",)),
            recreate=RecreateSettings(("ConfigMap",)),
        ),
    ),
    state_namespace=STATES,
    lease_duration=LEASE,
)
TARGETS = tuple(target.name for target in SETTINGS.targets)
NAMESPACES = ("front", "back", "shared", "side")
"""Those that exist already."""

Body = dict[str, Any]


@dataclass(frozen=True)
class Slot:
    """One object that a target may declare, in a few variants; variant 0: not at all."""

    target: str
    kind: str
    namespace: str
    name: str

    @property
    def file(self) -> str:
        return f"{self.target}/{self.kind}-{self.namespace}-{self.name}.json"

    def body(self, variant: int) -> Body:
        """Return the object in one of its variants, 1 to 3."""
        metadata: Body = {"name": self.name} | ({"namespace": self.namespace} if self.namespace else {})
        if variant == 3:
            metadata["labels"] = {"variant": "three"}
        return _CONTENT[self.kind](variant) | {"metadata": metadata}


def _config_map(variant: int) -> Body:
    data = {"key": str(variant)} | ({"more": "yes"} if variant == 2 else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data}


def _fixed(variant: int) -> Body:
    return _config_map(variant) | {"immutable": True}


def _secret(variant: int) -> Body:
    return {"apiVersion": "v1", "kind": "Secret", "data": {"password": base64.b64encode(f"{SECRET}{variant}".encode()).decode()}}


def _role(variant: int) -> Body:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"][:variant]}]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules}


def _namespace(variant: int) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace"}


_CONTENT = {"ConfigMap": _config_map, "Fixed": _fixed, "Secret": _secret, "Role": _role, "Namespace": _namespace}

ANCHORS = tuple(Slot(target.name, "ConfigMap", target.namespaces[0], "anchor") for target in SETTINGS.targets)
"""Declared always: a target without any object is refused."""
ANNEX = Slot("side", "Namespace", "", "annex")
SLOTS = (
    Slot("front", "ConfigMap", "front", "one"),
    Slot("front", "Secret", "front", "two"),
    Slot("front", "ConfigMap", "shared", "three"),
    Slot("front", "Role", "shared", "four"),
    Slot("back", "ConfigMap", "back", "five"),
    Slot("back", "ConfigMap", "shared", "six"),
    Slot("back", "Role", "back", "seven"),
    Slot("side", "Fixed", "side", "eight"),
    Slot("side", "ConfigMap", "annex", "nine"),
    ANNEX,
    Slot("front", "ConfigMap", "shared", "moving"),
    Slot("back", "ConfigMap", "shared", "moving"),
    Slot("front", "Role", "shared", "roving"),
    Slot("back", "Role", "shared", "roving"),
)
MOVING = ("moving", "roving")
"""Names of what both `front` and `back` may declare."""

Choice = Mapping[Slot, int]
"""Which variant of each slot a commit declares."""


def files(choice: Choice, broken: str = "") -> dict[str, str]:
    """Return the files of a commit. `broken`: a target whose path doesn't render, or is empty (`-front`)."""
    chosen = {slot: variant for slot, variant in choice.items() if variant}
    if any(slot.namespace == "annex" for slot in chosen):
        chosen[ANNEX] = 1
    made = {slot.file: json.dumps(slot.body(variant)) for slot, variant in (dict.fromkeys(ANCHORS, 1) | chosen).items()}
    if broken.startswith("-"):
        made = {name: text for name, text in made.items() if not name.startswith(f"{broken[1:]}/")} | {f"{broken[1:]}/README.md": "empty"}
    elif broken:
        made[f"{broken}/broken.yaml"] = "a: [1"
    return made


def declared(commit: Mapping[str, str], target: str) -> dict[Identity, Body] | None:
    """Return what a commit declares for a target; None when it can't be rendered."""
    mine = {name: text for name, text in commit.items() if name.startswith(f"{target}/")}
    if any(name.endswith("broken.yaml") for name in mine):
        return None
    bodies = [json.loads(text) for name, text in mine.items() if name.endswith(".json")]
    return {identity_of(body): body for body in bodies} or None


@cache
def applyset(target: str) -> str:
    return applyset_id(state_name(target), STATES)


def membership(target: str) -> Membership:
    return Membership(TargetMarks(target, applyset(target)))


def fits(wanted: Body, live: Body | None) -> bool:
    """Whether live is as declared: everything declared has its value, and nothing of ours is left over."""
    if live is None:
        return False
    ours: Body = next((entry["fieldsV1"] for entry in live["metadata"].get("managedFields", ()) if entry["manager"] == "anneal"), {})
    extent = {f"f:{key}" for key in wanted.get("data", {})}
    return _within(wanted, live) and set(ours.get("f:data", {})) == extent


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_within(value, live.get(key)) for key, value in wanted.items())
    return bool(wanted == live)
