"""A run that waits: what it waits for, what ends that before its time, and how it tells of what isn't healthy."""
