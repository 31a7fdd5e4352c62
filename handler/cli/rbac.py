"""`anneal rbac`: the least rights that a target needs, as YAML for an administrator; and which kinds it has or wants (`needed`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import click

from handler.app.instances.registry import trigger_of
from handler.cli import instance_rights, needed_rights, reports
from handler.cli.local_source import Directory
from handler.cli.needed_rights import Grant, NeededKinds
from handler.cli.render import as_yaml, rendered_at
from handler.cli.session import Session
from handler.cluster.discovery import Discovery
from handler.config.git_settings import RepositoryAuth
from handler.config.instance_target import InstanceTarget
from handler.config.settings import Settings, Target
from handler.model.errors import AccessDenied, PlanRefused
from handler.model.names import Resource
from handler.model.render import Rendered
from handler.plan.admission import declared_kinds
from handler.plan.exclusive import is_looked_for, is_read_for_names
from handler.state.record import State

_ESCALATION = """\
# This target declares roles or bindings. The API server lets only identities write them that hold every right in them, or, as here,
# `escalate` on exactly these roles and `bind` on exactly those that are bound: all who can push to git can then give these rights.
"""
_WHY = """\
# Pods and events are read while something isn't healthy, to say why; without these rights the reason is shorter.
"""
_LOGS = """\
# evidence.logs of this target is `record`: the end of a failing container's log is kept in its record, without the values of the Secrets
# that its pod can read. For that they are read, too: a log whose Secrets can't be read is withheld.
"""
_PAGE = """\
# For the page: what the target's objects own, their events, and logs; by name the Secrets that pods can read, to mask their logs by them.
"""
_AT_HOME = """\
# The last of these are for the handler's own cluster, which holds the Secrets that the configuration refers to: apply them there.
"""
HOME = {"anneal.dev/cluster": "the handler's own"}  # the annotation of what is for another cluster than the rest


def rbac(
    session: Session,
    target: str | None,
    *,
    namespaced: bool,
    service_account: str | None,
    group: str | None,
    user: str | None,
    page: bool,
    filename: Path | None,
) -> int:
    """Print the least Roles and ClusterRoles that TARGET needs, with their bindings."""
    chosen = asked = session.target(target)
    settings = session.settings
    if sum(map(bool, (group, user, service_account))) > 1:
        raise click.UsageError("--service-account, --group and --user exclude each other")
    account = service_account or f"{settings.state_namespace}/anneal"
    if account.count("/") != 1:
        raise click.UsageError(f"--service-account {account}: expected NAMESPACE/NAME")
    other = {"apiGroup": needed_rights.RBAC, "kind": "Group" if group else "User", "name": group or user or ""}
    handler = other if other["name"] else _subject(account)
    if filename:
        chosen = _checked_out(session, chosen, filename)
    with session.output.working(f"rendering {chosen.name}"):
        parts = [_Part.of(session, each, namespaced=namespaced, page=page) for each in _deployed(session, chosen)]
    own = needed_rights.own_grants(settings, asked)
    if asked.is_template or asked.instance:
        own = (*own, *instance_rights.follower_grants(settings, chosen, instance_rights.how_served(session.handler, chosen)))
    wanted = [grant for part in parts for grant in part.wanted]
    granted = [grant for part in parts for grant in part.grants]
    at_home = _at_home(settings, asked, _subject(account))
    planning = planner_documents(chosen, granted)
    documents = [*_documents(chosen, handler, own, parts), *planning, *at_home]
    if session.output.as_json:
        session.output.document({"apiVersion": "v1", "kind": "List", "items": documents})
        return reports.DONE_CODE
    spaces = sorted({grant.namespace for grant in (*own, *granted)} - {""})
    session.output.text(f"# The least that target {chosen.name} needs. These namespaces must exist: {', '.join(spaces)}\n")
    resources = {grant.resource for grant in wanted}
    session.output.text("".join(text for resource, text in (("pods", _WHY), ("pods/log", _LOGS)) if resource in resources))
    session.output.text(_PAGE if page else "")
    if any({"escalate", "bind"} & set(grant.verbs) for grant in granted):
        session.output.text(_ESCALATION)
    session.output.text(_PLANNED if planning else "")
    if at_home:
        session.output.text(_AT_HOME)
    for document in documents:
        session.output.text(f"---\n{as_yaml(document)}")
    return reports.DONE_CODE


def _checked_out(session: Session, target: Target, directory: Path) -> Target:
    """Let a target's commit be what a directory holds: nothing is deployed from it, so it needs neither credentials nor a signature."""
    local = replace(target, repository=replace(target.repository, auth=RepositoryAuth()), verify=None)
    return session.use(replace(session.settings, targets=(local,)), Directory(directory))


@dataclass(frozen=True, slots=True)
class _Part:
    """What one target, or an instance that stands for those of its namespace, needs. `wanted`: of `grants`, what explains what fails."""

    target: Target
    grants: tuple[needed_rights.Grant, ...]
    wanted: tuple[needed_rights.Grant, ...]

    @classmethod
    def of(cls, session: Session, target: Target, *, namespaced: bool, page: bool) -> Self:
        _, rendered = rendered_at(session, replace(target, impersonate=None))  # that may lack the rights that are printed
        found = needed(session, target, rendered, used_only=namespaced)
        wanted = needed_rights.wanted_grants(target, found)
        shown = tuple(grant for grant in needed_rights.page_grants(found) if grant not in wanted) if page else ()
        return cls(target, (*theirs(session, target, found), *wanted, *shown), wanted)


def theirs(session: Session, target: Target, found: NeededKinds | None) -> tuple[needed_rights.Grant, ...]:
    """Return what a target's identity can't do without. `found`: None: what it declares isn't known. Raises AnnealError."""
    grants = needed_rights.target_grants(target, found) if found else tuple(needed_rights.value_reads(target))
    if not isinstance(target, InstanceTarget):
        return grants
    return (*grants, *instance_rights.instance_grants(target, instance_rights.how_served(session.handler, target)))


def _deployed(session: Session, target: Target) -> Sequence[Target]:
    """Return a target; of a template an instance in each namespace that has one."""
    if not target.is_template:
        return (target,)
    found = instance_rights.samples(session.handler.instances, target)
    if not found:
        seen = f"there is no {trigger_of(target).main.kind} yet: only the handler's own rights are printed, not what its instances need"
        session.output.note(f"note: {seen}")
    return found


def _documents(
    target: Target, handler: Mapping[str, str], own: tuple[needed_rights.Grant, ...], parts: Sequence[_Part]
) -> Iterator[dict[str, Any]]:
    name = f"anneal-{target.name}"
    mine = [*own, *(grant for part in parts if part.target.impersonate is None for grant in part.grants)]
    yield from needed_rights.documents(name, mine, handler)
    for part in parts:
        if part.target.impersonate:
            account = part.target.impersonate.service_account
            of = name if part.target.name == target.name else f"{name}.{account.partition('/')[0]}"
            yield from needed_rights.documents(f"{of}-deployer", part.grants, _subject(account))


def _at_home(settings: Settings, target: Target, handler: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what lets the handler read Secrets of its own cluster for a target of another one, marked as such."""
    if not needed_rights.is_elsewhere(target):
        return []
    made = needed_rights.documents(f"anneal-{target.name}-secrets", needed_rights.secret_reads(settings, target), handler)
    return [{**document, "metadata": {**document["metadata"], "annotations": HOME}} for document in made]


def _subject(account: str) -> Mapping[str, str]:
    namespace, _, name = account.partition("/")
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


# --- which kinds
def needed(session: Session, target: Target, rendered: Rendered, *, used_only: bool = False, served_only: bool = False) -> NeededKinds:
    """Return what a target needs rights for, by its render, its record and discovery.

    `used_only`: where the whitelist is `*`, only the namespaces in use. `served_only`: leaves out kinds that the API server doesn't serve,
    where this raises PlanRefused otherwise.
    """
    discovery = session.handler.discovery(target)
    state = _state(session, target)
    bodies = [manifest.body() for manifest in rendered.manifests]
    kinds = set(_declared(bodies, discovery, served_only=served_only))
    for resource in map(discovery.preferred, state.kinds if state else ()):
        if resource and resource.group_kind not in {kind.group_kind for kind in kinds}:
            kinds.add(resource)
    placed = [_placed(body, target, kinds) for body in bodies]
    namespaces = target.namespaces
    if used_only and "*" in namespaces:
        used = {str(body["metadata"].get("namespace") or "") for body in placed} | {target.namespace}
        namespaces = tuple(sorted((used - {""}) | set(target.exclusive) | (state.namespaces if state else frozenset())))
    listed = discovery.listable() if target.exclusive else ()
    undeclared = tuple(kind for kind in listed if is_looked_for(kind) or is_read_for_names(kind))
    return NeededKinds(tuple(sorted(kinds, key=lambda kind: (kind.group, kind.plural))), namespaces, tuple(placed), undeclared)


def _state(session: Session, target: Target) -> State | None:
    try:
        return session.handler.store(target).read().state
    except AccessDenied:
        return None


def _declared(bodies: Sequence[dict[str, Any]], discovery: Discovery, *, served_only: bool) -> Iterator[Resource]:
    own = dict(kind for body in bodies for kind in declared_kinds(body))
    for body in bodies:
        version, kind = str(body.get("apiVersion")), str(body.get("kind"))
        found = own.get((version, kind)) or discovery.find(version, kind)
        if found is None and served_only:
            continue
        if found is None:
            seen = f"the API server doesn't serve {version} {kind}"
            raise PlanRefused.of(f"{kind}/{body['metadata']['name']}", seen, fix="install its CustomResourceDefinition first")
        yield Resource(found.group, "", found.kind, found.plural, found.namespaced)


def _placed(body: dict[str, Any], target: Target, kinds: Iterable[Resource]) -> dict[str, Any]:
    scoped = {kind.group_kind.kind for kind in kinds if not kind.namespaced}
    metadata = body["metadata"]
    if target.namespace and not metadata.get("namespace") and body.get("kind") not in scoped:
        metadata["namespace"] = target.namespace
    return body


_PLANNED = """\
# pullRequests.identity judges plans by dry-runs, for which the API server wants the rights of the writes; the policy refuses those writes.
# Objects that no policy sees (admissionregistration.k8s.io), and roles, which no account may write that lacks their rights, aren't judged.
"""
_UNSEEN = frozenset({"admissionregistration.k8s.io", needed_rights.RBAC})
"""Groups without rights: the first is exempt from policies (kubernetes.io, "Validating Admission Policy"), the second escalates."""
_VERBS = ("create", "patch")
_GROUP = "admissionregistration.k8s.io/v1"


def planner_documents(target: Target, granted: Iterable[Grant]) -> list[dict[str, Any]]:
    """Return what lets an account judge plans on pull requests: rights to write, and a policy that lets nothing but dry-runs of it pass.

    `granted`: what the target's own identity may; empty: there is no such account.
    """
    if target.pull_requests is None:
        return []
    namespace, _, name = target.pull_requests.identity.partition("/")
    mine = sorted(
        {
            Grant(each.namespace, each.group, each.resource, _VERBS)
            for each in granted
            if set(_VERBS) <= set(each.verbs) and each.group not in _UNSEEN
        }
    )
    policy = f"anneal-{target.name}-planner"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        _policy(policy, f"system:serviceaccount:{namespace}:{name}"),
        {
            "apiVersion": _GROUP,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": policy},
            "spec": {"policyName": policy, "validationActions": ["Deny"]},
        },
        *needed_rights.documents(policy, mine, {"kind": "ServiceAccount", "name": name, "namespace": namespace}),
    ]


def _policy(name: str, user: str) -> dict[str, Any]:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    return {
        "apiVersion": _GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "planner", "expression": f'request.userInfo.username == "{user}"'}],
            "validations": [{"expression": "has(request.dryRun) && request.dryRun", "message": f"{user} only plans: dryRun=All"}],
        },
    }
