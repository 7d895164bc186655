"""Broken on purpose: a bracket without its partner."""

NUMBERS = [1, 2, 3


def after():
    return NUMBERS
