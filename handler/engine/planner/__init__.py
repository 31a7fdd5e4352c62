"""The planning half of a run: reads git and the cluster, and writes nothing. `planner` leads."""
