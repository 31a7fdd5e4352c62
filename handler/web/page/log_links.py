"""The logs beside one that is shown: of the object's other pods, of the pod's other containers, of before a restart. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogLink:
    """One log. `query`: of its address; `shown`: whether it is the one that the page shows."""

    text: str
    query: str
    shown: bool


def log_query(subject: str, container: str = "", *, previous: bool = False) -> str:
    """Return the query of a log's address."""
    asked = {"object": subject, "container": container, "previous": "1" if previous else ""}
    return urlencode({name: text for name, text in asked.items() if text})


def pod_links(log: Json) -> list[LogLink]:
    """Return a link for each pod of the object whose log this is; none where it has one pod."""
    named = ((each.rpartition("/")[2], each) for each in log["pods"])
    return [LogLink(name, log_query(each), name == log["pod"]) for name, each in named]


def container_links(log: Json) -> list[LogLink]:
    """Return a link for each log that the pod has; none where there is one. They name the pod: another may do worst in a moment."""
    found = list(_containers(log, f"Pod/{log['object'].split('/')[1]}/{log['pod']}"))
    return found if len(found) > 1 else []


def _containers(log: Json, pod: str) -> Iterator[LogLink]:
    for each in log["containers"]:
        for previous in (False, True) if each["previous"] else (False,):
            text = f"{each['name']}, before its last restart" if previous else str(each["name"])
            shown = (each["name"], previous) == (log["container"], log["previous"])
            yield LogLink(text, log_query(pod, each["name"], previous=previous), shown)
