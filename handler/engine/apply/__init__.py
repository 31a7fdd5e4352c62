"""Writes a plan: applies stage by stage, prunes, and waits until what was deleted is gone."""
