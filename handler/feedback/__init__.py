"""What a run tells others: metrics so far. Law: labels come from the configuration and from our own words, never from a payload."""
