"""What Prometheus scrapes: the door's own counts, and the listener that shows all of them."""
