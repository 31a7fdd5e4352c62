"""One run of one target, from the record read to the record written: `reconcile` leads.

planner (desired set, plan) < run (context, revision, state transitions) < apply < waits < rollout_runner; beside `reconcile` stand the
ends of a run (`outcomes`), what it needn't do (`shortcuts`), what persons ask (`requests`) and the way back (`rollback`).
"""
