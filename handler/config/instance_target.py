"""An instance as a target: what its template says, for one object. Pure.

Law: an instance is confined to the namespace of its object, unless its template says otherwise; it has the rights of the ServiceAccount
that the template names there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from handler.config.settings import Impersonate, Settings, Target
from handler.model.instance import Instance, instance_name, is_instance, is_target_name, template_of


@dataclass(frozen=True, slots=True)
class InstanceTarget(Target):
    """The target of one instance. `template`: the configured target that it is of."""

    template: str = field(kw_only=True)
    instance: Instance = field(kw_only=True)


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
    given |= {"impersonate": Impersonate(f"{namespace}/{account}")} if account and namespace else {}
    return InstanceTarget(**given, template=template.name, instance=instance)
