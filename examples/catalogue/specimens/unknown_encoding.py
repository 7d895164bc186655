# -*- coding: no-such-codec -*-
"""Broken on purpose: declares an encoding that does not exist."""
