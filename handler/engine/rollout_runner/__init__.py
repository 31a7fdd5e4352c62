"""A rollout, carried out under an open attempt: `runner` goes through its parts: hooks, steps, their actions and checks."""
