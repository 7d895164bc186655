"""A day of chaos: jobs of all kinds, faults of all kinds, and what is held against the record in the end.

`tasks`: the handlers, an app of workers. `kinds`: what is enqueued, and how it may end. `faults`: what befalls
workers, database and network. `day`: it all together. `verdict`: what the auditor of one job does not see.
"""
