"""How long and how thoroughly hypothesis searches here."""

from hypothesis import settings

# A machine that is busy with something else must not fail a test; nothing is left in the working folder.
settings.register_profile("shiftboss", deadline=None, database=None, max_examples=80)
settings.load_profile("shiftboss")
