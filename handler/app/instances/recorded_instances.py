"""Instances as their records' metadata shows them: for views, which ask for no object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Target
from handler.model.instance import Instance, is_instance, template_of
from handler.state.configmap import INSTANCE, TARGET, read_instance


def recorded_instances(states: Mapping[str, Mapping[str, Any]], template: Target) -> Iterator[InstanceTarget]:
    """Yield the instances of a template that have a record, by its metadata; what configures them isn't known."""
    for metadata in states.values():
        name = str((metadata.get("labels") or {}).get(TARGET) or "")
        known = read_instance(str((metadata.get("annotations") or {}).get(INSTANCE) or ""))
        if is_instance(name) and template_of(name) == template.name and known is not None:
            yield instance_target(template, Instance(known.identity, known.uid, {}))
