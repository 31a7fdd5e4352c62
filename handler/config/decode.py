"""Nodes become settings: one walk over the dataclasses' shape that notes every mistake and never stops at the first.

A value that can't be read is `BAD` on its way up, and so is what holds one: nothing half-read leaves.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Literal, get_args, get_origin

import yaml

from handler.config import value_formats
from handler.config.cluster_settings import Cluster, Eks
from handler.config.git_settings import Promoted, Repository, Revision, SecretRef, Tls
from handler.config.renderer_settings import GONE, RendererSettings
from handler.config.setting_rules import RULES, UNIQUE
from handler.config.settings import EvidenceSettings, Impersonate, MetricsSettings, Prune, Rollback, SqsSettings, Wait
from handler.config.settings_shape import Json, Slot, slots
from handler.config.value_formats import FORMS, RANGES, ValueFormat
from handler.config.yaml_nodes import ConfigMistakes, join, pairs, place, scalar, word
from handler.model.advice import advice
from handler.model.instance import is_target_name, template_of
from handler.model.manifest import canonical

Pairs = dict[str, tuple[yaml.Node, yaml.Node]]
BAD: Any = object()
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?(?:[eE][-+]?[0-9]{1,2})?")
"""What a number of free content looks like: a float holds it exactly."""
IN_SHORT: Mapping[type, str] = {
    Cluster: "context",
    Eks: "cluster",
    EvidenceSettings: "logs",
    Impersonate: "serviceAccount",
    MetricsSettings: "bind",
    Promoted: "from",
    Prune: "enabled",
    RendererSettings: "type",
    Repository: "url",
    Revision: "branch",
    Rollback: "onFailure",
    SqsSettings: "url",
    Tls: "caFile",
    Wait: "timeout",
}
"""The key that a lone text, number or truth in the place of a mapping is meant for."""
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Decoder:
    """Where mistakes go and what depends on the installation.

    `choices`: allowed texts of a kind (renderers, target names). `classes`: what stands in a class's place (webhooks of more providers).
    `partial`: the mapping is `defaults`, where nothing is required.
    """

    mistakes: ConfigMistakes
    choices: Mapping[str, Collection[str]]
    classes: Mapping[type, type] = field(default_factory=dict)
    partial: bool = False

    def mapping(self, node: yaml.Node, cls: type, subject: str, also: Collection[str] = ()) -> Any:
        """Return an instance of a settings class, or BAD; `also` are keys that others read."""
        found = pairs(node, subject, self.mistakes)
        if found is None:
            return BAD
        cls = self.classes.get(cls, cls)
        shape = slots(cls)
        self._unknown(found, [*(slot.key for slot in shape), *also], subject, cls)
        values = {slot.name: self._slot(slot, found, node, subject) for slot in shape}
        if not self.partial:
            self._rules(cls, values, found, node, subject)
        return BAD if any(value is BAD for value in values.values()) else cls(**values)

    def _unknown(self, found: Pairs, known: list[str], subject: str, cls: type) -> None:
        for name, (key, _) in found.items():
            if name not in known:
                shown = subject if cls is SecretRef else join(subject, value_formats.plain(name))  # `{hunter2}` is a key, too
                gone = GONE.get(name) if cls is RendererSettings else None
                self.mistakes.add(key, shown, "unknown key", gone or nearest(name, known))

    def _slot(self, slot: Slot, found: Pairs, node: yaml.Node, subject: str) -> Any:
        if slot.key in found:
            return self.value(found[slot.key][1], slot, join(subject, slot.key))
        if slot.required and not self.partial:
            example = FORMS[slot.kind].example if slot.kind in FORMS else ""
            fix = f"add `{slot.key}: {example}`" if example else f"add `{slot.key}:`"
            self.mistakes.add(node, join(subject, slot.key), "is required and missing", fix)
        return BAD if slot.required else slot.default

    def _rules(self, cls: type, values: dict[str, Any], found: Pairs, node: yaml.Node, subject: str) -> None:
        keys = {slot.name: slot.key for slot in slots(cls)}
        for rule in RULES:
            arguments = [values[name] for name in rule.fields] if rule.cls is cls else [BAD]
            for fault in rule.check(*arguments) if BAD not in arguments else ():
                key = keys.get(fault.field, "")
                at, below = within(found[key][1] if key in found else node, fault.within)
                self.mistakes.add(at, (join(subject, key) if key else subject) + below, fault.message, fault.fix)

    def value(self, node: yaml.Node, slot: Slot, subject: str) -> Any:
        """Return one field's value, or BAD."""
        if slot.optional and word(node) == "nothing":
            return None
        if slot.words and word(node) == "text":
            return self._word(node, slot, subject)
        if slot.item is not None:
            return self._list(node, slot, subject)
        return self.single(node, slot.type, slot, subject)

    def _list(self, node: yaml.Node, slot: Slot, subject: str) -> Any:
        lone = FORMS[slot.kind].lone
        if lone and word(node) == "text" and scalar(node) == lone:
            return (lone,)
        if FORMS[slot.kind].single and word(node) == "text":
            found = self.single(node, slot.item, slot, subject)
            return BAD if found is BAD else (found,)
        if word(node) != "a list":
            return self._wrong(node, subject, f'a list or "{lone}"' if lone else _listed(slot), self._alone(node, slot))
        self._unique(node.value, slot.item, subject)
        whole = replace(self, partial=False)
        items = [
            whole.single(item, slot.item, slot, f"{subject}[{label(item, index)}]") if not lone or scalar(item) != lone else lone
            for index, item in enumerate(node.value)
        ]
        return BAD if any(item is BAD for item in items) else tuple(items)

    def _word(self, node: yaml.Node, slot: Slot, subject: str) -> Any:
        text, items = scalar(node), get_args(slot.item)
        if text in slot.words:
            return text
        is_item = text in items or (bool(slot.kind) and not FORMS[slot.kind].complaint(text))
        fix = advice("write {text}: {yaml}", slot.key, [text]) if is_item else nearest(text, [*slot.words, *items])
        self.mistakes.add(node, subject, f"expected {_listed(slot)}, found {value_formats.show(text)}", fix)
        return BAD

    def _unique(self, items: list[yaml.Node], cls: type, subject: str) -> None:
        first: dict[str, yaml.Node] = {}
        for node in (child(item, UNIQUE[cls]) for item in items if cls in UNIQUE):
            if isinstance(node, yaml.ScalarNode) and first.setdefault(node.value, node) is not node:
                message = f"{value_formats.show(node.value)} is taken, first at {place(first[node.value])}"
                self.mistakes.add(node, join(subject, UNIQUE[cls]), message, "names are unique")

    def single(self, node: yaml.Node, hint: Any, slot: Slot, subject: str) -> Any:
        """Return one value that isn't a list, or BAD."""
        if is_dataclass(hint):
            return self._whole(node, hint, slot, subject)  # type: ignore[arg-type]  # is_dataclass also accepts instances
        if get_origin(hint) is Literal:
            return self._choice(node, get_args(hint), slot.kind, subject)
        if hint is bool:
            return self._truth(node, subject)
        if hint is Json:
            return self._json(node, subject)
        if slot.kind in RANGES:
            return self._number(node, hint, slot.kind, subject)
        return self._text(node, slot, subject)

    def _whole(self, node: yaml.Node, cls: type, slot: Slot, subject: str) -> Any:
        written = self._in_short(node, cls, slot) if isinstance(node, yaml.ScalarNode) else ""
        return self._wrong(node, subject, "a mapping", written) if written else self.mapping(node, cls, subject)

    def _wrong(self, node: yaml.Node, subject: str, expected: str, fix: str = "") -> Any:
        """Note a value of the wrong type without showing it: it may be a secret in the wrong place."""
        self.mistakes.add(node, subject, f"expected {expected}, found {word(node)}", fix)
        return BAD

    def _in_short(self, node: yaml.ScalarNode, cls: type, slot: Slot) -> str:
        """Return how a mapping is written that stands there in short; empty: that isn't clear, or it is no value of that key."""
        key = IN_SHORT.get(cls, "")
        pair = yaml.ScalarNode("tag:yaml.org,2002:str", key, node.start_mark, node.end_mark), node
        whole = yaml.MappingNode("tag:yaml.org,2002:map", [pair], node.start_mark, node.end_mark)
        trial = replace(self, mistakes=ConfigMistakes(""))
        if key and trial.mapping(whole, cls, "") is not BAD:
            return advice("write {text}: {{text}: {text}}", slot.key, key, _flow(node))
        kind = next((each.kind for each in slots(cls) if each.key == key), "")
        example = FORMS[kind].example if kind in FORMS and kind not in self.choices else ""
        return advice("write it as {text}: {{text}: {text}}", slot.key, key, example) if example and word(node) == "text" else ""

    def _alone(self, node: yaml.Node, slot: Slot) -> str:
        """Return how a list is written of which the only item stands there; empty: it is none."""
        items = yaml.SequenceNode("tag:yaml.org,2002:seq", [node], node.start_mark, node.end_mark)
        is_item = word(node) == "text" and replace(self, mistakes=ConfigMistakes("")).value(items, slot, "") is not BAD
        return advice("write {text}: [{text}]", slot.key, _flow(node)) if is_item else ""

    def _truth(self, node: yaml.Node, subject: str) -> Any:
        """Only `true` and `false`: YAML 1.2 and the schema read `yes` as text."""
        if word(node) != "true or false":
            return self._wrong(node, subject, "true or false")
        if scalar(node) not in _TRUTH:
            self.mistakes.add(node, subject, f"expected true or false, found {scalar(node)}")
        return _TRUTH.get(scalar(node), BAD)

    def _json(self, node: yaml.Node, subject: str) -> Any:
        """Return a mapping as canonical JSON, its scalars as YAML 1.2 reads them."""
        if word(node) != "a mapping":
            return self._wrong(node, subject, "a mapping")
        value = self._free(node, subject)
        return BAD if value is BAD else Json(canonical(value).decode()) if value else Json("")

    def _free(self, node: yaml.Node, subject: str) -> Any:
        if isinstance(node, yaml.SequenceNode):
            items = [self._free(item, f"{subject}[{index}]") for index, item in enumerate(node.value)]
            return BAD if any(item is BAD for item in items) else items
        if isinstance(node, yaml.MappingNode):
            found = pairs(node, subject, self.mistakes)
            values = {key: self._free(value, join(subject, key)) for key, (_, value) in (found or {}).items()}
            return BAD if found is None or any(value is BAD for value in values.values()) else values
        text, kind = scalar(node), word(node)
        if kind == "nothing":
            return None
        if kind == "true or false" and text in _TRUTH:
            return _TRUTH[text]
        if kind == "a number" and NUMBER.fullmatch(text):
            return float(text) if any(sign in text for sign in ".eE") else int(text)
        return text if kind == "text" else self._wrong(node, subject, "text in quotes, a number, true or false")

    def _choice(self, node: yaml.Node, options: tuple[str, ...], kind: str, subject: str) -> Any:
        """Return one of some words, or a text of the form `kind`, if there is one; what begins as its example does is meant to be that."""
        form, expected = FORMS[kind] if kind else None, f"one of {', '.join(options)}"
        if word(node) != "text":
            return self._wrong(node, subject, expected)
        text = scalar(node)
        meant = form is not None and text.partition("-")[0] == form.example.partition("-")[0]
        complaint = form.complaint(text) if form and meant else None
        if text in options or (meant and not complaint):
            return text
        told = complaint or (f"expected {expected}, found {value_formats.show(text)}", nearest(text, options))
        self.mistakes.add(node, subject, *told)
        return BAD

    def _number(self, node: yaml.Node, hint: type, kind: str, subject: str) -> Any:
        limits, number = RANGES[kind], self._amount(node, kind)
        if number is not None and limits.least <= number <= limits.most and hint(number) == number:
            return hint(number)
        seen = {"a number": value_formats.plain, "text": value_formats.show}.get(word(node), lambda _: word(node))(scalar(node))
        self.mistakes.add(node, subject, f"expected {limits.noun} from {limits.span()}, found {seen}")
        return BAD

    def _amount(self, node: yaml.Node, kind: str) -> float | None:
        text = scalar(node)
        if word(node) == "text" and RANGES[kind].is_duration:
            return value_formats.seconds(text)
        return float(text) if word(node) == "a number" and NUMBER.fullmatch(text) else None

    def _text(self, node: yaml.Node, slot: Slot, subject: str) -> Any:
        form, text = FORMS[slot.kind], scalar(node)
        if word(node) != "text":
            return self._unquoted(node, subject, form)
        if text == "" and slot.default == "":
            return text
        complaint = form.complaint(text) or self._not_offered(slot.kind, form, text)
        if complaint:
            self.mistakes.add(node, subject, *complaint)
            return BAD
        return tidy(text) if slot.kind == "path" else text

    def _unquoted(self, node: yaml.Node, subject: str, form: ValueFormat) -> Any:
        """Where text is expected, a bare number, truth or date only lacks its quotes."""
        if form.private or word(node) not in ("a number", "true or false", "a date"):
            return self._wrong(node, subject, form.expected)
        text = value_formats.plain(scalar(node))
        self.mistakes.add(node, subject, f"expected {form.expected}, found {text}, which YAML reads as {word(node)}", f'write "{text}"')
        return BAD

    def _not_offered(self, kind: str, form: ValueFormat, text: str) -> tuple[str, str] | None:
        offered = self.choices.get(kind)
        if offered is None or text in offered:
            return None
        if kind == "target" and (value_formats.is_glob(text) or (is_target_name(text) and template_of(text) in offered)):
            return None
        return f"expected {form.expected}, found {value_formats.show(text)}, which isn't known here", nearest(text, offered)


def _listed(slot: Slot) -> str:
    also = " and ids of ApplySets" if slot.kind == "applySet" else ""
    return f"{', '.join(slot.words)} or a list of {', '.join(get_args(slot.item))}{also}" if slot.words else "a list"


def _flow(node: yaml.Node) -> str:
    """Write a scalar as it stands, within brackets."""
    return advice("{yaml}", scalar(node)) if word(node) == "text" else scalar(node)


def child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the value of a mapping's key, None if there is none."""
    found = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in found if scalar(name) == key), None)


def within(node: yaml.Node, path: Sequence[str]) -> tuple[yaml.Node, str]:
    """Return the node to which keys, names of items and entries lead, as far as they do, and what its subject adds."""
    subject = ""
    for step in path:
        items = list(node.value) if isinstance(node, yaml.SequenceNode) else []
        below = child(node, step) or next((item for item in items if step in (scalar(item), scalar(child(item, "name")))), None)
        if below is None:
            break
        node, subject = below, f"{subject}[{value_formats.plain(step)}]" if items else join(subject, step)
    return node, subject


def label(item: yaml.Node, index: int) -> str:
    """Name a list's item by its `name` if that is one, else by its index."""
    name = scalar(child(item, "name"))
    return name if re.fullmatch(FORMS["name"].pattern, name) else str(index)


def nearest(name: str, known: Collection[str]) -> str:
    """Suggest the known name that looks most alike, else list them all."""
    close = difflib.get_close_matches(name[:80], known, 1)
    return f"did you mean `{close[0]}`?" if close else f"known: {', '.join(sorted(known)) or 'none'}"


def tidy(path: str) -> str:
    """Return a directory without empty and `.` parts and without trailing slash; the root is empty."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))
