"""Reports run events: log, Prometheus, EMF, Locutus, command line. Law: labels are the configuration's or our words, never a payload's."""
