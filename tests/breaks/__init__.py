"""Breaks: for each guarantee of docs/reliability.md one line whose loss a test has to notice.

`breaks.toml` holds them, `trial.py` tries one, `python -m tests.breaks` (`make check-tests`) tries all.
"""
