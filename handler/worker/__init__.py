"""`anneal serve` and `anneal work` as processes: `supervise` starts them, `worker` takes jobs and runs them.

Beside the worker: `intake` brings it the messages of a shared queue, `ticks` keep its time, `answering` says how things stand.
"""
