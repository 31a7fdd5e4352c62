"""Instances without a configuration (`anneal locutus`, `kubernixos`, `apply -f`), found by their records in the kubeconfig's cluster.

Law: nothing is written, and no git is asked. A record counts only if it is Anneal's own ApplySet parent of its name and namespace, and of
files of a directory. One LIST of metadata finds them, in all namespaces where that is allowed, else in those that these commands use by
themselves. Two of one name are called by their namespaces, too: `default/locutus`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from handler.app.connections import Connections, Options, RecordPlace
from handler.app.record_summaries import TOOLING
from handler.cli.kubernixos_flags import NAME as CLOSURE
from handler.cli.locutus_flags import NAME, NAMESPACE
from handler.cluster.own_objects import OwnObjects
from handler.config.git_settings import Repository, directory_url
from handler.config.load import ConfigNotFound
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Settings, Target
from handler.model.errors import AccessDenied, AnnealError, Problem
from handler.model.names import MANAGED_BY, STATE_NAMESPACE, state_name
from handler.state.configmap import INSTALLATION, TARGET, foreign
from handler.state.known_summaries import summary_in
from handler.state.summary import home_of

_NAMESPACES = (NAMESPACE, STATE_NAMESPACE)  # where these commands keep records if nothing else is said
_OURS = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())


def settings(environ: Mapping[str, str], options: Options, missing: ConfigNotFound) -> tuple[Settings, dict[str, RecordPlace]]:
    """Return settings of what is recorded, and where each record is. Raises ConfigNotFound: nothing is, or no cluster can be asked."""
    try:
        found = tuple(_found(_records(environ, options)))
    except AnnealError as error:
        raise ConfigNotFound(*missing.problems, *error.problems) from error
    if not found:
        problem = missing.problems[0]
        seen = f"{problem.message}; nor does the cluster have a record of `anneal locutus` or `anneal apply -f`"
        raise ConfigNotFound(Problem(problem.subject, seen, problem.place, problem.fix))
    times = Counter(place.name for place in found)
    names = {place.name if times[place.name] == 1 else f"{place.namespace}/{place.name}": place for place in found}
    targets = tuple(_target(name, directory_url(place.name)) for name, place in names.items())
    return Settings(targets, state_namespace=found[0].namespace, installation=found[0].installation), names


def _target(name: str, repository: str) -> Target:
    return Target(name=name, repository=Repository(url=repository), namespaces=("*",), cluster_scoped=("*",))


def _records(environ: Mapping[str, str], options: Options) -> OwnObjects:
    anything = _target("any", directory_url("any"))
    alone = Settings((anything,))
    return Connections(alone, resolve_all(alone, environ, needs=RUNS), environ, options).records(anything)


def _found(objects: OwnObjects) -> Iterator[RecordPlace]:
    uid = _uid(objects)
    for body in sorted(_listed(objects), key=lambda each: (each["metadata"]["name"], each["metadata"]["namespace"])):
        place = _place(body["metadata"])
        if place and _is_directory(objects, body["metadata"], place, uid):
            yield place


def _listed(objects: OwnObjects) -> list[dict[str, Any]]:
    try:
        return objects.overview("ConfigMap", "", _OURS)
    except AccessDenied as everywhere:
        found, denied = [], 0
        for namespace in _NAMESPACES:
            try:
                found += objects.overview("ConfigMap", namespace, _OURS)
            except AccessDenied:
                denied += 1
        if denied == len(_NAMESPACES):
            raise everywhere from None
        return found


def _uid(objects: OwnObjects) -> str:
    try:
        return objects.cluster_uid()
    except AccessDenied:
        return ""


def _place(metadata: dict[str, Any]) -> RecordPlace | None:
    labels, namespace = metadata.get("labels") or {}, str(metadata["namespace"])
    name = str(labels.get(TARGET) or "")
    if metadata["name"] != state_name(name) or foreign(metadata, namespace, name, TOOLING):
        return None
    return RecordPlace(namespace, name, str(labels.get(INSTALLATION) or ""))


def _is_directory(objects: OwnObjects, metadata: dict[str, Any], place: RecordPlace, uid: str) -> bool:
    """Whether a record is of a directory, by its summary alone where that is enough."""
    # One that names no repository, because its first run failed, may be anything's but for these commands' own names and place.
    own = (place.name, place.namespace) in ((NAME, NAMESPACE), (CLOSURE, NAMESPACE))
    summary = summary_in(metadata)
    if summary and uid:
        homes = [directory_url(place.name), *([""] if own else [])]
        return summary.home in [home_of(repository, place.installation, uid) for repository in homes]
    body = objects.get("ConfigMap", place.namespace, state_name(place.name)) or {}
    repository = str((body.get("data") or {}).get("repository") or "")
    return repository == directory_url(place.name) or (own and not repository)
