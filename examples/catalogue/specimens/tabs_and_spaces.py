"""Broken on purpose: indents with tabs and spaces."""


def mixed(value):
    if value:
	return 1
        return 2
