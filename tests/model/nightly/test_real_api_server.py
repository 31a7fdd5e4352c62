"""The same rules and laws with a real API server: time and threads are still the conductor's, but what is written is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from handler.cluster.connect import ClusterConnection, connect
from handler.config.settings import Cluster
from infra.controlplane import controlplane as controlplanes
from tests.model.fleet import HOMES, SPACES
from tests.model.fleet_rules import Fleets
from tests.model.model import Model
from tests.model.ownership import Ownership
from tests.model.real_api_server import RealServer
from tests.model.searching import TIMEOUT
from tests.model.simulated_time import simulated
from tests.model.state_machine import Deployments
from tests.model.targets import SLOTS

EXAMPLES = int(os.environ.get("ANNEAL_MODEL_EXAMPLES", "0")) // 20
SETTLED = tuple(slot for slot in SLOTS if "annex" not in (slot.namespace, slot.name))
"""A real Namespace takes its own time to go."""


class OnAControlPlane(Deployments):
    connection: ClassVar[ClusterConnection]

    def begun(self) -> Model:
        return Model(RealServer(self.connection), slots=SETTLED)


class FleetsOnAControlPlane(Fleets):
    connection: ClassVar[ClusterConnection]

    def begun(self) -> Ownership:
        return Ownership(RealServer(self.connection, (*SPACES, *HOMES)))


@pytest.fixture
def connection(spare_directory: Path) -> Iterator[ClusterConnection]:
    """The way to a control plane of the test's own: its namespaces have plain names."""
    kubeconfig = controlplanes.up(spare_directory)
    yield connect(Cluster(), kubeconfig=str(kubeconfig), environ=os.environ)
    controlplanes.down(spare_directory)


def short(examples: int) -> settings:
    """Return the profile of a search for which each request is a real one."""
    return settings(
        max_examples=EXAMPLES or examples,
        stateful_step_count=20,
        deadline=None,
        derandomize=not EXAMPLES,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.cluster
@pytest.mark.timeout(TIMEOUT)
def test_the_laws_hold_on_a_real_cluster(connection: ClusterConnection) -> None:
    OnAControlPlane.connection = FleetsOnAControlPlane.connection = connection
    with simulated():
        run_state_machine_as_test(OnAControlPlane, settings=short(12))
        run_state_machine_as_test(FleetsOnAControlPlane, settings=short(12))
