"""`scripts/bench`: measures every row of DESIGN.md section 10 that applies, prints it, writes JSON, says what is missed.

One control plane, one run, ratios against kubectl of the server's own version; quote ratios, not seconds. Nothing else should run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from infra.bench import (
    cli_rows,
    cluster_rows,
    cold_rows,
    door_rows,
    evidence_rows,
    exclusive_rows,
    feedback_rows,
    health_rows,
    instance_rows,
    jsonnet_rows,
    live_rows,
    many_rows,
    memory_rows,
    order_rows,
    page_rows,
    process_rows,
    promotion_rows,
    render_rows,
    sibling_rows,
    status_rows,
    waiting_rows,
)
from infra.bench.bed import Bed, bed
from infra.bench.rows import Row

_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Measure = Callable[[Bed], Iterator[Row]]


def measures(*, quick: bool, peers: bool = False) -> dict[str, Measure]:
    """Every measurement by name.

    `quick`: kubectl's throttled prune is measured on 60 objects and scaled, the door for 10 s, not 60, live pages for 15,
    a tenth of the instances that come and go.
    `peers`: the command line beside other projects', too.
    """
    return {
        "import": lambda _: process_rows.door_import(),
        "cold": cold_rows.cold,
        "fetch": process_rows.fetch,
        "render": process_rows.render,
        "renderers": render_rows.renderers,
        "values": render_rows.values,
        "jsonnet": jsonnet_rows.jsonnet,
        "first": cluster_rows.first_apply,
        "unchanged": cluster_rows.unchanged,
        "cli": lambda bench: cli_rows.cli(bench, peers=peers),
        "prune": lambda bench: cluster_rows.prune(bench, quick=quick),
        "kube-prometheus": lambda bench: cluster_rows.kube_prometheus(bench, _DATA),
        "memory": process_rows.memory,
        "idle": memory_rows.idle,
        "pushes": memory_rows.pushes,
        "waiting": waiting_rows.waiting,
        "evidence": evidence_rows.evidence,
        "feedback": feedback_rows.feedback,
        "thousand": many_rows.thousand,
        "ordered": order_rows.ordered,
        "promoted": promotion_rows.promoted,
        "status": status_rows.status,
        "health": health_rows.health,
        "siblings": sibling_rows.siblings,
        "instances": lambda bench: instance_rows.instances(bench, quick=quick),
        "exclusive": exclusive_rows.exclusive,
        "door": lambda bench: door_rows.door(bench, quick=quick),
        "page": page_rows.page,
        "live": lambda bench: live_rows.live(bench, quick=quick),
    }


def main() -> int:
    """Measure; 0 when every budget is met, 1 when one is missed."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("only", nargs="*", help=f"measure only these: {', '.join(measures(quick=True))}")
    parser.add_argument("--quick", action="store_true", help="kubectl's prune of 60 objects, scaled; 10 s of webhooks, not 60")
    parser.add_argument("--peers", action="store_true", help="the command line beside kapp, too, which is built first")
    parser.add_argument("--output", type=Path, default=Path("bench.json"))
    asked = parser.parse_args()
    rows: list[Row] = []
    with bed() as bench:
        for name, measure in measures(quick=asked.quick, peers=asked.peers).items():
            if asked.only and name not in asked.only:
                continue
            for row in measure(bench):
                rows.append(row)
                print(row.line(), flush=True)
    missed = [row.name for row in rows if not row.met]
    facts = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "cores": os.cpu_count(), "rows": [row.plain() for row in rows]}
    asked.output.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{len(rows) - len(missed)} of {len(rows)} budgets met" + (f"; missed: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
