"""Broken on purpose: dedents to a level that was never opened."""


def step(value):
        if value:
            return 1
    return 2
