"""`anneal serve` and `anneal work` as processes: `supervisor` starts them, `worker` takes jobs and runs them.

Beside the worker: `sqs_consumer` brings it the messages of a shared queue, `ticks` keep its time, `worker_api` says how things stand.
"""
