"""What a record says of the object that its target is an instance for. Pure.

Law: a record is of one object. An object of the same kind, namespace and name that was made anew is the same instance.
"""

from __future__ import annotations

from handler.config.settings import Target
from handler.model.errors import StateInvalid
from handler.state.record import RecordedInstance, State


def recorded_instance(target: Target, state: State) -> RecordedInstance | None:
    """Return what a run of a target records. Raises StateInvalid: the record is of another object, whose name was cut to the same."""
    instance, known = target.instance, state.instance
    if instance is None:
        return known
    if known is not None and known.identity != instance.identity:
        seen = f"its record is of {known.identity}, and {instance.identity} has the same name as a target"
        raise StateInvalid.of(f"target {target.name}", seen, fix=f"give {instance.identity} another name")
    before = known.definition if known and (known.uid == instance.uid or not instance.definition) else ""
    definition = before or instance.definition  # one object has one definition, whatever a look that came late pairs it with
    return RecordedInstance(instance.identity, instance.uid, definition, instance.generation)
