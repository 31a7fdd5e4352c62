"""Instances as their records' metadata shows them: for views, which ask for no object, and for the end of a template that is gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handler.app.record_summaries import TOOLING
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Settings, Target
from handler.model.instance import Instance, is_instance, template_of
from handler.model.names import state_name
from handler.state.configmap import INSTANCE, TARGET, foreign, read_instance


def recorded_names(states: Mapping[str, Mapping[str, Any]], settings: Settings, template: str) -> list[str]:
    """Return the names of a template's instances that have a record, sorted; what only looks like a record is none."""
    named = {str((metadata.get("labels") or {}).get(TARGET) or ""): (key, metadata) for key, metadata in states.items()}
    found = {name: metadata for name, (key, metadata) in named.items() if key == state_name(name)}
    ours = (name for name, metadata in found.items() if not foreign(dict(metadata), settings.state_namespace, name, TOOLING))
    return sorted(name for name in ours if is_instance(name) and template_of(name) == template)


def recorded_instances(states: Mapping[str, Mapping[str, Any]], template: Target) -> Iterator[InstanceTarget]:
    """Yield the instances of a template that have a record, by its metadata; what configures them isn't known."""
    for metadata in states.values():
        name = str((metadata.get("labels") or {}).get(TARGET) or "")
        known = read_instance(str((metadata.get("annotations") or {}).get(INSTANCE) or ""))
        if is_instance(name) and template_of(name) == template.name and known is not None:
            yield instance_target(template, Instance(known.identity, known.uid, {}))
