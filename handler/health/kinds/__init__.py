"""How each kind tells whether it does what is asked of it: pure functions from a live object to Health, kstatus' rules and ours."""
