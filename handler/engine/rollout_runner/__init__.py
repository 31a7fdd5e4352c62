"""A rollout, carried out under an open attempt: `walking` goes through its parts: hooks, steps, their actions and checks."""
