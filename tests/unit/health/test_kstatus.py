"""Health of live objects: one sample for each kind and state. Its name is `<kind>.<expected status>[.<why>].yaml`.

Comments at a sample's head are given to `judge`, or expected of it: `says`, `again`, `now`, `generation`; `live: absent` makes the sample
the manifest of an object that was created and isn't there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.health.kinds.custom import READY
from handler.health.kinds.reading import moment
from handler.health.kstatus import ALWAYS_HEALTHY, KINDS, judge, remnant
from handler.model.health import Health, Status
from handler.model.names import GroupKind, identity_of
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.yaml"))
NOW = "2026-01-01T00:01:00Z"


@dataclass(frozen=True)
class Sample:
    """One file, read. `expected`: what the name says."""

    name: str
    head: dict[str, str]
    body: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> Sample:
        text = path.read_text()
        return cls(path.stem, dict(re.findall(r"^# (\w+): ?(.*)$", text, re.MULTILINE)), yaml.safe_load(text))

    @property
    def expected(self) -> Status:
        return Status(self.name.split(".")[1].replace("-", " "))

    @property
    def kind(self) -> GroupKind:
        return identity_of(self.body).group_kind

    def judged(self) -> Health:
        now = moment(self.head.get("now", NOW))
        assert now is not None
        live = None if self.head.get("live") == "absent" else self.body
        return judge(live, int(self.head.get("generation", 0)), now, self.body)


@each_row("path", SAMPLES)
def test_a_sample_is_judged_as_its_name_says(path: Path) -> None:
    sample = Sample.of(path)
    found = sample.judged()
    assert (found.status, found.message, found.again) == (sample.expected, sample.head["says"], float(sample.head.get("again", 0)))
    assert sample.name.split(".")[0] == sample.kind.kind.lower()


def test_each_kind_has_a_sample_that_is_healthy_and_one_that_is_not() -> None:
    kinds: dict[GroupKind, set[bool]] = {kind: set() for kind in (*KINDS, *READY)}
    for sample in map(Sample.of, SAMPLES):
        kinds.setdefault(sample.kind, set()).add(sample.expected is Status.CURRENT)
    always = {GroupKind("networking.k8s.io", "Ingress"), *ALWAYS_HEALTHY}
    assert {kind for kind, seen in kinds.items() if seen != {True, False} and kind not in always} == set()
    assert not KINDS.keys() & ALWAYS_HEALTHY
    assert not READY.keys() & (KINDS.keys() | ALWAYS_HEALTHY)


def test_any_status_is_judged() -> None:
    of_kinds = {sample.kind: sample for sample in map(Sample.of, SAMPLES)}.values()

    @each_row("odd", ["text", 7, None, [], ["text"], {"conditions": "none"}, {"conditions": ["Ready"], "phase": ["Running"]}])
    @each_row("sample", of_kinds)
    def judged(sample: Sample, odd: Any) -> None:
        assert isinstance(judge({**sample.body, "status": odd}, 0, 0.0), Health)

    judged()


def test_a_message_of_a_controller_is_one_printable_line_and_whole() -> None:
    """Who shows it masks first and cuts then: of half a secret no mask knows."""
    sample = Sample.of(next(path for path in SAMPLES if path.stem == "offer.in-progress.not-ready"))
    sample.body["status"]["conditions"][0]["message"] = "\x1b[31mred\r\n" + "long " * 1000 + "secret"
    found = sample.judged().message
    assert found.isprintable()
    assert found.endswith("long secret”")
    sample.body["status"]["conditions"][0]["message"] = "no”\n    kubectl delete ns prod"
    assert sample.judged().message == 'Pending: “no" kubectl delete ns prod”'


def test_a_vanished_job_is_done_only_if_it_had_a_ttl_and_was_seen() -> None:
    body = Sample.of(next(path for path in SAMPLES if path.stem == "job.current.removed-by-its-ttl")).body
    assert judge(None, 0, 0.0, body).healthy
    assert judge(None, 0, 0.0).status is Status.NOT_FOUND


@each_row("path", SAMPLES)
def test_an_object_that_has_to_settle_is_judged_by_its_remnant(path: Path) -> None:
    sample = Sample.of(path)
    found = sample.judged()
    if found.again:
        assert Sample(sample.name, sample.head, remnant(sample.body)).judged() == found
        later = {**sample.head, "now": "2026-01-01T00:02:00Z"}
        assert Sample(sample.name, later, remnant(sample.body)).judged() == Sample(sample.name, later, sample.body).judged()


def test_what_a_custom_resource_is_judged_by_is_in_its_remnant() -> None:
    """The replicas that were asked for stand in its spec."""
    sample = Sample.of(next(path for path in SAMPLES if path.stem == "machinedeployment.current.scaled"))
    del sample.body["status"]["observedGeneration"]
    sample.body["metadata"] |= {"generation": 2, "creationTimestamp": "2026-01-01T00:00:58Z"}
    found = sample.judged()
    assert (found.status, found.again) == (Status.IN_PROGRESS, 3.0)
    assert Sample(sample.name, {"now": "2026-01-01T00:01:03Z"}, remnant(sample.body)).judged().healthy


def test_an_object_of_any_group_with_the_two_conditions_of_crossplane_is_judged_by_both() -> None:
    """Composites of Crossplane are of any group: an object with Synced and Ready is one, with only one of them it is not."""
    sample = Sample.of(next(path for path in SAMPLES if path.stem == "xdatabase.in-progress.pipeline"))
    assert sample.judged().status is Status.IN_PROGRESS
    del sample.body["status"]["conditions"][1]
    assert sample.judged().healthy
