"""Label selectors as kubectl writes them (`app=shop,tier in (web,api)`), as matchLabels, or as a LabelSelector; judged here, not asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handler.cluster.vendor_models import body_of
from handler.model.errors import AnnealError

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?{_NAME}"
_VALUE = rf"(?:{_NAME})?"
_TERM = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<lacks>{_KEY})|(?P<key>{_KEY})(?:\s*(?P<sign>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|\s+(?P<among>in|notin)\s*\((?P<values>\s*{_VALUE}\s*(?:,\s*{_VALUE}\s*)*)\))?)\s*(?:,(?=.)|$)"
)
_WAY = "give at least one label that what may go carries: delete_selector={'app': 'shop'}"


class SelectorRefused(AnnealError, ValueError):
    """A selector can't be read, or selects what carries no label. Nothing was read or written."""


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on labels: `key` has one of `values` (None: any), or, `denied`, has not."""

    key: str
    values: frozenset[str] | None
    denied: bool = False

    def admits(self, labels: Mapping[str, Any]) -> bool:
        """Return whether labels meet it; as in Kubernetes, what lacks the key meets a denial."""
        found = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return found is not self.denied


@dataclass(frozen=True, slots=True)
class DeleteSelector:
    """All of its requirements count, of which one at least demands a label."""

    requirements: tuple[LabelRequirement, ...]

    def admits(self, body: Mapping[str, Any]) -> bool:
        """Return whether an object's labels meet all requirements."""
        labels = body["metadata"].get("labels") or {}
        return all(each.admits(labels) for each in self.requirements)

    @classmethod
    def of(cls, given: Any) -> DeleteSelector:
        """Read a selector: text, a dict, a model. Raises SelectorRefused: it can't be read, or no label is demanded."""
        body = body_of(given)
        if not isinstance(body, str | dict):
            raise SelectorRefused.of("delete_selector", f"is a {type(given).__name__}", fix=_WAY)
        found = tuple(_of_text(body) if isinstance(body, str) else _of_mapping(body))
        if not any(not each.denied for each in found):
            raise SelectorRefused.of("delete_selector", f"{given!r} also selects what carries no label", fix=_WAY)
        return cls(found)


def _of_text(text: str) -> list[LabelRequirement]:
    found, at = [], 0
    while at < len(text.rstrip()):
        term = _TERM.match(text, at)
        if term is None:
            seen = f"can't be read at {text[at : at + 40]!r}"
            raise SelectorRefused.of("delete_selector", seen, fix="write it as kubectl get -l does: 'app=shop,tier in (web,api)'")
        at = term.end()
        found.append(_term(term))
    return found


def _term(term: re.Match[str]) -> LabelRequirement:
    if term["absent"]:
        return LabelRequirement(term["lacks"], None, denied=True)
    if term["among"]:
        return LabelRequirement(term["key"], frozenset(value.strip() for value in term["values"].split(",")), term["among"] == "notin")
    return LabelRequirement(term["key"], frozenset((term["value"],)) if term["sign"] else None, term["sign"] == "!=")


def _of_mapping(given: Mapping[str, Any]) -> list[LabelRequirement]:
    whole = bool(given.keys() & {"matchLabels", "matchExpressions"})
    labels, rows = (given.get("matchLabels") or {}, given.get("matchExpressions") or []) if whole else (given, [])
    if not isinstance(labels, Mapping) or not isinstance(rows, list):
        raise SelectorRefused.of("delete_selector", f"{dict(given)!r} can't be read", fix=_WAY)
    strange = sorted(given.keys() - {"matchLabels", "matchExpressions"}) if whole else []
    strange += [key for key, value in labels.items() if not (isinstance(key, str) and isinstance(value, str))]
    if strange:
        raise SelectorRefused.of("delete_selector", f"{strange[0]!r} has no label's value there", fix=_WAY)
    return [LabelRequirement(key, frozenset((value,))) for key, value in labels.items()] + [_expression(row) for row in rows]


def _expression(row: Any) -> LabelRequirement:
    found = row if isinstance(row, Mapping) else {}
    key, operator, values = found.get("key"), str(found.get("operator")), found.get("values") or []
    known = isinstance(key, str) and operator in ("In", "NotIn", "Exists", "DoesNotExist") and isinstance(values, list)
    if not known or bool(values) is not operator.endswith("In") or not all(isinstance(value, str) for value in values):
        fix = "write {'key': 'tier', 'operator': 'In', 'values': ['web']}; operators: In, NotIn, Exists, DoesNotExist"
        raise SelectorRefused.of("delete_selector", f"its expression {row!r} can't be read", fix=fix)
    denied = operator in ("NotIn", "DoesNotExist")
    return LabelRequirement(str(key), frozenset(values) if operator.endswith("In") else None, denied)
