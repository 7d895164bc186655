# -*- coding: ascii -*-
"""Broken on purpose: says ASCII and holds UTF-8."""

DRINK = "café"
