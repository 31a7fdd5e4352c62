"""How a live object does, by kstatus' rules. Pure: a live object in, its Health out."""
