"""What a run is: its context, the revision it aims at, and what its target's state becomes."""
