"""Health between the runs: a worker WATCHes what its targets have declared, and their records keep what comes of it."""
