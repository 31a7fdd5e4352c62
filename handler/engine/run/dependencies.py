"""What the runs of one target are made of; it outlives them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from handler.config.settings import Target
from handler.engine.health.custom_health import CustomHealth, no_expressions
from handler.engine.planner.desired import Preparer
from handler.engine.planner.planner import Planner
from handler.engine.planner.siblings import NoSiblings, Siblings
from handler.engine.run.former_record import RecordPlaces
from handler.engine.run.other_records import NoOtherRecords, OtherRecords
from handler.engine.run.promotion import Promoters, nowhere
from handler.model.plan import Plan
from handler.model.run_event import Announce, unheard
from handler.plan.gap import FieldGaps
from handler.rollout.interfaces import ActionRow, Query, no_metrics
from handler.state.lease import LeaseLock
from handler.state.record import Pin, State
from handler.state.record_values import AS_CONFIGURED, RunOnce
from handler.state.store import StateStore


@dataclass(frozen=True, slots=True)
class AwaitedTarget:
    """A target that another one depends on. `settings`: the digest of its settings.

    `head`: the commit that its revision names, or that others have proven for its record, by an answer of monotonic second so or later;
    `is_held_by`: whether a head leaves its pin as it is; `reaches`: whether a commit leads to another. They raise AnnealError.
    """

    target: Target
    settings: str
    head: Callable[[State, float], str]
    is_held_by: Callable[[Pin, str], bool]
    reaches: Callable[[str, str], bool] = nowhere


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What one target's runs are made of; `settings` is the digest of the target's settings.

    `drift_interval`: seconds between drift runs; what they judge is written again before it grows old, unless health is `watched` between.
    `slack`: by how many seconds a look at the git host may be older than a tick that it serves. `notes`: see `requests.noted`. `first`: the
    impatient store, by which a cluster that doesn't answer is found out. `patience`: how many seconds one run may wait for health; a
    function has none. `looks`: nothing else judges health between drift runs, so ticks do. `metrics`: asks a Prometheus, and waits for its
    answer. `announce`: takes the run's events, on any of its threads. `agrees`: asked of a plan before its first write; None: nothing is
    asked. `health`: the operator's expressions. `gaps`: takes what a dry run compares, field by field; None: it isn't asked for.
    `places`: of its records; None: there is but one. `awaited`: the targets that it depends
    on; `others`: their records. `promoters`: the targets whose proven commits it follows. `once`: what these runs do that
    the settings don't say.
    """

    target: Target
    settings: str
    preparer: Preparer
    planner: Planner
    store: StateStore
    lock: LeaseLock
    cluster_uid: Callable[[bool], str]
    lease_duration: float
    slack: float = 0.0
    drift_interval: float = math.inf
    watched: bool = False
    notes: bool = False
    first: StateStore | None = None
    patience: float = math.inf
    looks: bool = False
    actions: Mapping[str, ActionRow] = field(default_factory=dict)
    metrics: Query = no_metrics
    clock: Callable[[], float] = time.time
    announce: Announce = unheard
    agrees: Callable[[Plan], bool] | None = None
    siblings: Siblings = field(default_factory=NoSiblings)
    health: CustomHealth = field(default_factory=no_expressions)
    gaps: FieldGaps | None = None
    places: RecordPlaces | None = None
    awaited: tuple[AwaitedTarget, ...] = ()
    others: OtherRecords = field(default_factory=NoOtherRecords)
    promoters: Promoters = field(default_factory=Promoters)
    once: RunOnce = AS_CONFIGURED
