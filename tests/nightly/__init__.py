"""Differential tests: thousands of generated inputs, each judged by the reference program too. `scripts/test nightly` runs them.

Law: no other run collects this folder; what a merge must pass is a smoke of the same comparison beside the other tests. The inputs follow
from a seed that is written down, so that a night fails by a change of ours or of the reference, never by chance. What may differ is a
table in the test, and the same table is in docs.
"""
