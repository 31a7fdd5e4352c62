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

Metadata = Mapping[str, Any]


def records_of(states: Mapping[str, Metadata], settings: Settings, template: str) -> dict[str, Metadata]:
    """Return the records of a template's instances, by the instances' names; what only looks like a record is none.

    `states`: metadata by the ConfigMaps' names (`record_summaries.listed`).
    """
    named = {str((metadata.get("labels") or {}).get(TARGET) or ""): (key, metadata) for key, metadata in states.items()}
    found = {name: metadata for name, (key, metadata) in named.items() if key == state_name(name) and is_instance(name)}
    ours = {name: each for name, each in found.items() if template_of(name) == template}
    return {name: each for name, each in ours.items() if not foreign(dict(each), settings.state_namespace, name, TOOLING)}


def recorded_instances(states: Mapping[str, Metadata], settings: Settings, template: Target) -> Iterator[InstanceTarget]:
    """Yield the instances of a template that have a record, by its metadata; what configures them isn't known."""
    for metadata in records_of(states, settings, template.name).values():
        known = read_instance(str((metadata.get("annotations") or {}).get(INSTANCE) or ""))
        if known is not None:
            yield instance_target(template, Instance(known.identity, known.uid, {}))
