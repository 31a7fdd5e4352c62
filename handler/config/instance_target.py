"""An instance as a target: what its template says, for one object. Pure.

Law: an instance is confined to the namespace of its object, and takes over nothing that lives there, unless its template says otherwise;
it has the rights of the ServiceAccount that the template names there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from handler.config.settings import Impersonate, Settings, Target
from handler.model.advice import advice
from handler.model.errors import ConfigInvalid
from handler.model.instance import Instance, instance_name, is_instance, is_target_name, template_of


@dataclass(frozen=True, slots=True)
class InstanceTarget(Target):
    """The target of one instance. `template`: the configured target that it is of."""

    template: str = field(kw_only=True)
    instance: Instance = field(kw_only=True)


def for_instance(target: Target, instance: Instance) -> InstanceTarget:
    """Return a target as the one of an instance, as it is otherwise: what is known of one by its record alone."""
    given = {each.name: getattr(target, each.name) for each in fields(Target)}
    return InstanceTarget(**given, template=template_of(target.name), instance=instance)


def refuse_template(target: Target, has: str) -> None:
    """Raise ConfigInvalid if a target is a template. `has`: what its instances have instead of it, for the message."""
    if target.is_template:
        seen = f"is a template: each of its instances {has}"
        raise ConfigInvalid.of(f"target {target.name}", seen, fix=advice("name one; to see which there are: anneal status {}", target.name))


def configured_as(settings: Settings, name: str) -> Target | None:
    """Return a target by name, of an instance what its template says, under its name; None: none is configured, whatever lives."""
    found = settings.target(template_of(name)) if is_target_name(name) else None
    if found is None or not is_instance(name):
        return found
    return replace(found, name=name) if found.is_template else None


def instance_target(template: Target, instance: Instance) -> InstanceTarget:
    """Return the target of an instance of a template."""
    trigger = template.trigger.resource if template.trigger else None
    assert trigger is not None  # noqa: S101 - only a template has instances
    namespace, account = instance.identity.namespace, trigger.service_account
    confined = bool(namespace) and not trigger.across_namespaces
    given = {each.name: getattr(template, each.name) for each in fields(Target)}
    given |= {"name": instance_name(template.name, namespace, instance.identity.name)}
    given |= {"namespaces": (namespace,), "namespace": namespace, "cluster_scoped": ()} if confined else {}
    given |= {"namespace": template.namespace or namespace} if not confined else {}
    given |= {"adopt": "never"} if template.adopt == "unowned" and not trigger.adopt_unowned else {}
    given |= {"impersonate": Impersonate(f"{namespace}/{account}")} if account and namespace else {}
    return InstanceTarget(**given, template=template.name, instance=instance)
