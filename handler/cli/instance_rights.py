"""The rights that a template needs beside those of every target, and which of its instances stand for all. The rights are pure.

Two identities, as for every target: the handler's own follows the objects of the main resource; an instance's, which is that of a
ServiceAccount in the namespace of its object or the handler's own, reads the other resources and writes the status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from handler.app.instances.listed_objects import Kinds, served
from handler.app.instances.registry import Instances, trigger_of
from handler.cli.needed_rights import Grant
from handler.config.instance_target import InstanceTarget
from handler.config.settings import Settings, Target
from handler.model.api_groups import is_certainly_custom, is_kubernetes_own
from handler.model.names import Resource
from handler.plan.admission import CRD

Served = Mapping[str, Resource]
"""How the cluster serves what a trigger watches, by the names of the resources."""
FOLLOWS = ("get", "list", "watch")
_KEEPS = ("delete", "get", "update")


def how_served(ways: Kinds, template: Target) -> Served:
    """Ask a template's cluster how it serves what its trigger watches. Raises KindNotServed, AnnealError."""
    return {each.name: served(ways, template, each) for each in trigger_of(template).resources}


def samples(instances: Instances, template: Target) -> list[InstanceTarget]:
    """Return one instance of each namespace, by names: what it needs, all others there need. Raises AnnealError: they aren't known."""
    found: dict[str, InstanceTarget] = {}
    for each in instances.look(template).values():
        space = each.instance.identity.namespace
        found[space] = min(found.get(space, each), each, key=lambda one: one.name)
    return [each for _, each in sorted(found.items())]


def follower_grants(settings: Settings, template: Target, resources: Served) -> tuple[Grant, ...]:
    """Return what the handler itself needs for a template: its instances' records have names that no rule can know."""
    trigger, where = trigger_of(template), settings.state_namespace
    main = resources[trigger.main_resource]
    grants = [
        Grant(where, "", "configmaps", _KEEPS),
        Grant(where, "coordination.k8s.io", "leases", _KEEPS),
        Grant(trigger.main.namespace if main.namespaced else "", main.group, main.plural, FOLLOWS),
    ]
    if not is_kubernetes_own(main.group):
        grants.append(Grant("", CRD.group, "customresourcedefinitions", ("get",), (f"{main.plural}.{main.group}",)))
    if trigger.service_account and main.namespaced:
        grants.append(Grant("", "", "serviceaccounts", ("impersonate",), (trigger.service_account,)))
    return tuple(grants)


def instance_grants(instance: InstanceTarget, resources: Served) -> Iterator[Grant]:
    """Yield what an instance's identity needs beside its members: the objects that configure it, and the status of its own."""
    trigger = trigger_of(instance)
    own = instance.instance.identity.namespace if trigger.service_account else ""
    for each in trigger.listed:
        resource = resources[each.name]
        yield Grant((each.namespace or own) if resource.namespaced else "", resource.group, resource.plural, FOLLOWS)
    main, space = resources[trigger.main_resource], instance.instance.identity.namespace
    yield Grant(space, main.group, main.plural, FOLLOWS)
    if trigger.write_status and is_certainly_custom(main.group):
        yield Grant(space, main.group, f"{main.plural}/status" if main.status else main.plural, ("patch",))
