"""A target, or a part of one, as it is put together of fields. Each value is judged by the configuration's own forms when it is taken.

Law: pure. A value that the configuration wouldn't take is noted as lost, with the configuration's own complaint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.cli.importing.custom_resource import CustomResource, SourceField, leaves
from handler.config.decode import NUMBER
from handler.config.settings import Target
from handler.config.settings_shape import slots
from handler.config.value_formats import FORMS
from handler.model.errors import Problem

MAX_DEPTH, MAX_VALUES = 24, 20_000
"""Of values that stand in the configuration, which itself has at most 32 levels."""
_COMMIT = "commit it as a file of values: renderer.valuesFiles"
HOME_CLUSTER = "read in the cluster that Anneal itself runs in; elsewhere write {file: PATH} or {env: NAME}"


class NotATarget(Exception):
    """A resource that no target stands for, and why. `problem`: what is missing, so that it could be one."""

    def __init__(self, why: str, problem: Problem | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.problem = problem


@dataclass(slots=True)
class TargetDraft:
    """Settings by their keys. `sources`: the resources that they were read from, the main one first; `name`: what it would be called.

    `after`: the resources that come first.
    """

    sources: list[CustomResource] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    after: list[CustomResource] = field(default_factory=list)

    def put(self, setting: str, value: Any) -> None:
        """Write a setting, by its keys joined by points."""
        *above, last = setting.split(".")
        inner = self.settings
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = value

    def take(self, found: SourceField, setting: str, value: Any, kind: str = "", text: str = "") -> bool:
        """Write a setting that a field became, and note that; False: the configuration doesn't take the value, which is noted instead."""
        fits = judged(found, setting, value, kind, text)
        if fits:
            self.put(setting, value)
        return fits

    def add(self, part: TargetDraft) -> None:
        """Take over the settings of a part, and what they were read from."""
        self.sources += [each for each in part.sources if not any(each is known for known in self.sources)]
        _merge(self.settings, part.settings)

    def ordered(self) -> dict[str, Any]:
        """Return the settings in the order in which a target documents them."""
        return {slot.key: self.settings[slot.key] for slot in slots(Target) if slot.key in self.settings}


def judged(found: SourceField, setting: str, value: Any, kind: str, text: str = "") -> bool:
    """Note which setting a field became; False: the configuration doesn't take the value, which is noted instead."""
    wrong = complaint(kind, value)
    if wrong:
        found.lost(f"{setting}: {wrong}", halts=True)
    else:
        found.set(setting, text)
    return not wrong


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def complaint(kind: str, value: Any) -> str:
    """Say what the configuration would say against a text, or each text of a list; empty: it takes it."""
    if isinstance(value, dict):
        return _too_much(value)
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        wrong = FORMS[kind].complaint(text) if isinstance(text, str) else None
        if wrong:
            return wrong[0]
    return ""


def _too_much(value: Mapping[str, Any]) -> str:
    for count, (path, leaf) in enumerate(leaves(value)):
        if len(path) > MAX_DEPTH or count > MAX_VALUES:
            return f"is {'deeper' if len(path) > MAX_DEPTH else 'larger'} than a configuration may be; {_COMMIT}"
        if type(leaf) in (int, float) and not NUMBER.fullmatch(repr(leaf)):
            return f"holds a number of more digits than a configuration keeps; {_COMMIT}"
    return ""
