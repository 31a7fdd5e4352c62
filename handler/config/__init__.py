"""The operator's YAML and environment become frozen Settings, once; every mistake is reported with its line."""
