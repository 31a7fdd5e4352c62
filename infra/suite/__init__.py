"""How the tests are run, and what they cost and guard, measured: `scripts/test --cost`.

- tiers: runs the gate, the night, or all
- sites: where the product can be mutated, and the mutants that stand for all of them
- tree: a copy of the checkout in which each mutant sleeps behind a switch
- probe: the switch: notes which test reaches it, or wakes one mutant; goes into that copy
- recorder: pytest's plugin for one run of everything: seconds by file, switches by test
- killing: pytest's plugin that runs, for each mutant, the tests that reach it
- coverage_by_file: pytest's plugin that notes lines and branches by file
- results: what was measured, kept from day to day
- choice: the cheapest files that kill what all kill; the table
"""
