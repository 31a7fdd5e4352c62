"""Which instance an object belongs to: its key, `namespace/name`, step by step, as Prometheus relabels. Pure.

    keep, drop   the key goes on where the whole of it matches, or where it doesn't
    replace      the whole key becomes the replacement where it matches; else it stays

Source: https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config; the configuration is Locutus'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from handler.config.key_regex import KeyMatch, key_regex
from handler.config.trigger_settings import KeyTransformation

_GROUP = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\$))")


def instance_key(key: str, transformations: Sequence[KeyTransformation]) -> str | None:
    """Return the key of the instance that an object's key leads to; None: it leads to none."""
    for each in transformations:
        found = key_regex(each.regex).fullmatch(key)
        if each.action == "replace":
            key = _expanded(each.replacement, found) if found else key
        elif (found is not None) != (each.action == "keep"):
            return None
        if not key:
            return None
    return key


def _expanded(replacement: str, found: KeyMatch) -> str:
    """Fill in the groups as Go does: one that there isn't is empty, `$$` is a dollar."""
    return _GROUP.sub(lambda each: "$" if each[3] else _group(found, each[1] or each[2]), replacement)


def _group(found: KeyMatch, name: str) -> str:
    try:
        return found[int(name) if name.isascii() and name.isdigit() else name] or ""
    except IndexError:
        return ""
