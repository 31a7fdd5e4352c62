"""desired + live -> Plan. Pure: no clock, no network; the same inputs give the same plan."""
