"""What a rule of settings finds, and how a rule is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding: the field it stands in (empty: the mapping itself), what was seen, the way out.

    `within`: keys, names and entries that lead on from that field to where it is written.
    """

    field: str
    message: str
    fix: str = ""
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SettingRule:
    """A check of some fields of a class; `check` takes their values in this order."""

    cls: type
    fields: tuple[str, ...]
    check: Callable[..., Iterator[Fault]]
