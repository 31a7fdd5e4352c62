"""What must hold between the settings of triggers, and between a template and what isn't one; rows of `setting_rules.RULES`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from handler.config.git_settings import Revision
from handler.config.key_regex import key_regex
from handler.config.renderer_settings import AUTO, FILE, HELM, KUSTOMIZE, NIX, RendererSettings
from handler.config.setting_fault import Fault, SettingRule
from handler.config.settings import Settings, Target
from handler.config.settings_shape import Json
from handler.config.trigger_settings import (
    KeyTransformation,
    LabelSelector,
    ResourceTrigger,
    SelectorRequirement,
    TriggerSettings,
    WatchedResource,
)
from handler.config.value_formats import FORMS, plain, show
from handler.model.advice import advice
from handler.model.instance import LONGEST_TEMPLATE
from handler.model.names import HEARTBEAT

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_WITHOUT_CONFIGURATION = (AUTO, FILE, KUSTOMIZE, HELM, NIX)
"""Renderers that take no configuration of a trigger; `auto` chooses among them, too."""


def main_is_listed(main_resource: str, resources: tuple[WatchedResource, ...]) -> Iterator[Fault]:
    """The main resource is one of those that are watched."""
    names = [each.name for each in resources]
    if main_resource not in names:
        known = f"which are {', '.join(names)}" if names else "for there are none"
        row = advice(
            "write the name of one of them, or add `- {name: {yaml}, apiVersion: GROUP/VERSION, kind: KIND}` to resources", main_resource
        )
        yield Fault("main_resource", f"names none of the resources, {known}", row)


def main_is_no_secret(main_resource: str, resources: tuple[WatchedResource, ...]) -> Iterator[Fault]:
    """What a Secret holds would be configuration: plans would show it, and records have its digest."""
    if any((each.name, each.api_version, each.kind) == (main_resource, "v1", "Secret") for each in resources):
        seen = f"{show(main_resource)} lists Secrets: what is in one would be shown by plans, and its digest recorded"
        yield Fault("main_resource", seen, "name a custom resource, and write `{name: secrets, apiVersion: v1, kind: Secret}` beside it")


def values_fit(operator: str, values: tuple[str, ...]) -> Iterator[Fault]:
    """What compares has values, what asks for presence has none."""
    if operator in ("In", "NotIn") and not values:
        yield Fault("values", f"is missing, and {operator} compares with it", "add `values: [...]`")
    if operator not in ("In", "NotIn") and values:
        yield Fault("values", f"goes with In and NotIn, and this is {operator}", "remove the line")
    for value in values:
        if not _LABEL_VALUE.fullmatch(value):
            yield Fault("values", f"holds {show(value)}, which no label can have")


def labels_are_texts(match_labels: Json) -> Iterator[Fault]:
    """Labels and their values are as the API server takes them."""
    for key, value in json.loads(match_labels or "{}").items():
        if wrong := FORMS["labelKey"].complaint(key):
            yield Fault("match_labels", wrong[0])
        if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value):
            seen = f"{plain(key)}: expected the value of a label, found {show(str(value))}"
            yield Fault("match_labels", seen, "quote it if it is a number")


def is_a_key_regex(regex: str) -> Iterator[Fault]:
    """A regular expression is one of RE2's."""
    try:
        key_regex(regex)
    except ValueError as error:
        yield Fault("regex", f"can't be read: {error}", "write it as RE2 has it: no look-around and no back-references")


def template_stands_alone(
    name: str,
    trigger: TriggerSettings | None,
    renamed_from: str,
    exclusive: tuple[str, ...],
    depends_on: tuple[str, ...],
    revision: Revision,
) -> Iterator[Fault]:
    """What is of one target alone isn't of a template's instances; and their names must fit into a label."""
    if trigger is None or trigger.resource is None:
        return
    if len(name) > LONGEST_TEMPLATE:
        yield Fault("name", f"has {len(name)} characters, and begins the names of instances", f"shorten it to {LONGEST_TEMPLATE}")
    if name == HEARTBEAT:
        yield Fault("name", "would name an instance's Lease as that of the servers", "choose another one")
    written = {"renamed_from": renamed_from, "exclusive": exclusive, "depends_on": depends_on}
    for field, value in written.items():
        if value:
            yield Fault(field, "is of a single target, and this one has instances", "remove the line, or the trigger")
    if revision.promoted:
        yield Fault("revision", "follows other targets, and this one has instances", "name a branch, tag, range or commit")


def takes_an_object(trigger: TriggerSettings | None, renderer: RendererSettings) -> Iterator[Fault]:
    """A renderer that takes no configuration would make the same objects for each instance."""
    if trigger is not None and trigger.resource is not None and renderer.chosen in _WITHOUT_CONFIGURATION:
        seen = f"is {renderer.chosen}, which takes no configuration: each instance would declare the same objects"
        yield Fault("renderer", seen, "write renderer: {type: jsonnet}, and let the program import 'generic-operator/config'")


def no_template_is_awaited(targets: tuple[Target, ...]) -> Iterator[Fault]:
    """A template isn't deployed itself, so nothing can wait for it or follow it."""
    templates = {target.name for target in targets if target.is_template}
    for target in targets:
        for name in templates.intersection(target.depends_on):
            seen = f"{name} is a template of instances, which isn't deployed itself"
            yield Fault("targets", seen, "remove it", (target.name, "dependsOn"))
        followed = target.revision.promoted.from_ if target.revision.promoted else ()
        for name in templates.intersection(followed):
            seen = f"{name} is a template of instances, and proves no commit"
            yield Fault("targets", seen, "follow another target", (target.name, "revision", "promoted", "from"))


def statuses_have_one_writer(targets: tuple[Target, ...]) -> Iterator[Fault]:
    """Two templates of the same objects would write the same conditions: what one says of its run would be lost to the other's."""
    writers: dict[object, str] = {}
    for target in targets:
        resource = target.trigger.resource if target.trigger else None
        main = next((each for each in resource.resources if each.name == resource.main_resource), None) if resource else None
        if resource is None or main is None or not resource.write_status:
            continue
        group = main.api_version.rpartition("/")[0]
        if "." not in group or group.endswith(".k8s.io"):  # Kubernetes' own, whose status is never written
            continue
        which = (target.cluster, target.namespaces, group, main.kind, main.namespace, main.label_selector.query, main.key_transformations)
        first = writers.setdefault(which, target.name)
        if first != target.name:
            seen = f"{first} writes the status of the same objects, too"
            place = (target.name, "trigger", "resource", "mainResource")
            yield Fault("targets", seen, "write `writeStatus: false` beside it", place)


OF_TRIGGERS = (
    SettingRule(ResourceTrigger, ("main_resource", "resources"), main_is_listed),
    SettingRule(ResourceTrigger, ("main_resource", "resources"), main_is_no_secret),
    SettingRule(SelectorRequirement, ("operator", "values"), values_fit),
    SettingRule(LabelSelector, ("match_labels",), labels_are_texts),
    SettingRule(KeyTransformation, ("regex",), is_a_key_regex),
    SettingRule(Target, ("name", "trigger", "renamed_from", "exclusive", "depends_on", "revision"), template_stands_alone),
    SettingRule(Target, ("trigger", "renderer"), takes_an_object),
    SettingRule(Settings, ("targets",), no_template_is_awaited),
    SettingRule(Settings, ("targets",), statuses_have_one_writer),
)
