"""The console: pages on which people see what the record says."""
