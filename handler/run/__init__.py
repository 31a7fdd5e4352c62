"""The parts of one run, where rooms are put together: planning, deciding, applying, recording. `handler.reconcile` leads."""
