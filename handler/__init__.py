"""Anneal's pipeline, stage by stage, and what each stage may not do.

    triggers   bytes + headers -> a verified Event.            Opens no socket, knows no cluster.
    model      Event + targets -> Jobs, each with its reason.  Pure: `target_matching`.
    queues     Job -> one run per target, newest wins.         Loses nothing that the tick couldn't heal.
    source     Job -> Tree, by dulwich, in memory.             Writes no file, runs no git, follows no redirect.
    render     Tree -> documents, in a sandboxed child.        Sees no network, no environment, no cluster.
    plan       desired + live -> Plan.                         Pure: the same inputs give the same plan.
    cluster    reads by label, dry-runs, writes under a fence. The only room that knows Kubernetes' client.
    health     a live object -> how it does.                   Pure.
    rollout    hooks, a Rollout's steps and checks.            Pure, too: what it is to ask for is handed to it.
    prometheus asks for the metrics that checks name.          Only where the operator has listed the address.
    state      the record, the Lease.                          The commit moves last.
    engine     `reconcile`, the one place where these stages meet; its parts in their order: planner, run, apply, waits, rollout_runner.
    inspect    a dry run, a look or two renders -> gap, orphans, inventory, events, logs, diff.  Reads only, for people who look.
    web        bytes in, answers out: deliveries, replay, the API, the page.  Reaches no cluster; the worker answers.

A room imports rooms that lie lower, and none beside it; the lint (`infra.house`) keeps that.
"""

__version__ = "0.1.0"
