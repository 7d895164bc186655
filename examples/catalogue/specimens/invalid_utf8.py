"""Broken on purpose: holds bytes that are not UTF-8."""

NAME = "valid here"

MUSIC = "café ÿþ"
