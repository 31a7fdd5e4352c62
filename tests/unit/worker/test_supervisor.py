"""What the supervisor listens on."""

from __future__ import annotations

import pytest

from handler.model.errors import ConfigInvalid
from handler.worker.supervisor import listen


def test_a_metrics_address_that_cant_be_bound_names_its_setting() -> None:
    with listen("127.0.0.1:0", "--bind") as taken, pytest.raises(ConfigInvalid) as refused:
        listen(f"127.0.0.1:{taken.getsockname()[1]}", "metrics.bind")
    assert str(refused.value).startswith("metrics.bind 127.0.0.1:")
