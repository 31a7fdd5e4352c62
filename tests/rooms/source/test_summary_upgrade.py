"""Summaries that another version wrote: the first run that reads the record writes them anew, and no later run does."""

from __future__ import annotations

import json
from dataclasses import replace

from handler.app.tick_survey import TickSurvey
from handler.model.event import Job
from handler.model.result import Outcome
from handler.state.configmap import SUMMARY
from infra.githost import Host
from tests.rooms.source.recorded_targets import Told, recorded


def test_a_drift_run_sums_up_anew_what_another_version_summed_up_and_then_writes_no_more(host: Host) -> None:
    fleet = recorded(host, 1, 1, ("east",))
    handler, target = fleet.handler(), fleet.settings.targets[0]
    assert handler.run(Job("t0", "drift")).outcome is Outcome.APPLIED
    objects = handler.objects(target)
    body = objects.get("ConfigMap", "anneal-system", "anneal-t0")
    assert body is not None
    text = body["metadata"]["annotations"][SUMMARY]
    body["metadata"]["annotations"][SUMMARY] = json.dumps({"commit": handler.head(target, 0.0).commit, "phase": "applied"})
    objects.replace(body)
    TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), old := Told())
    assert handler.run(Job("t0", "drift")).outcome is Outcome.UNCHANGED
    again = objects.get("ConfigMap", "anneal-system", "anneal-t0")
    assert again is not None
    assert (again["metadata"]["annotations"][SUMMARY], again["data"]) == (text, body["data"])
    TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), new := Told())
    assert (old.runs, new.quiet) == ({"t0"}, {"t0"})
    fleet.forget()
    assert handler.run(Job("t0", "drift")).outcome is Outcome.UNCHANGED
    assert not [call for call in fleet.places["east"].calls if call.writes]


def test_a_tick_sums_up_anew_where_no_drift_run_ever_comes(host: Host) -> None:
    fleet = recorded(host, 1, 1, ("east",))
    fleet.settings = replace(fleet.settings, targets=tuple(replace(target, drift="ignore") for target in fleet.settings.targets))
    handler, target = fleet.handler(), fleet.settings.targets[0]
    assert handler.run(Job("t0", "push", force=True)).outcome is Outcome.APPLIED
    objects = handler.objects(target)
    body = objects.get("ConfigMap", "anneal-system", "anneal-t0")
    assert body is not None
    body["metadata"]["annotations"][SUMMARY] = json.dumps({"commit": handler.head(target, 0.0).commit, "phase": "applied"})
    objects.replace(body)
    TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), old := Told())
    assert handler.run(Job("t0", "tick")).outcome is Outcome.UNCHANGED
    TickSurvey(fleet.settings, fleet.handler()).look(fleet.ticks(), new := Told())
    assert (old.runs, new.quiet) == ({"t0"}, {"t0"})
    fleet.forget()
    assert handler.run(Job("t0", "tick")).outcome is Outcome.UNCHANGED
    assert not [call for call in fleet.places["east"].calls if call.writes]
