"""How often somebody may try to log in. Counted in Django's default cache, which a project's processes share.

Counted for a name from an address, so that nobody locks out a person on call from elsewhere, and for an address,
so that nobody tries one password on all names. Attempts are counted before they are checked: many at once are no
way around it.
"""

import time
from hashlib import blake2b
from ipaddress import ip_address

from django.core.cache import cache

WINDOW_SECONDS = 300
"""Attempts are counted in windows of so long; a new one begins at nothing."""

ATTEMPTS = 10
"""Of one name from one address in a window."""

ATTEMPTS_OF_AN_ADDRESS = 100
"""Of all names from one address in a window. A private address may be a proxy's, that everybody comes from, and is
not counted."""


def attempt(name: str, address: str) -> int:
    """Count an attempt: 0 where it may be checked, else the seconds after which the next one may."""
    left = WINDOW_SECONDS - int(time.time()) % WINDOW_SECONDS
    tries = _count(_key(name, address))
    of_address = _count(_key(None, address)) if _is_public(address) else 0
    return left if tries > ATTEMPTS or of_address > ATTEMPTS_OF_AN_ADDRESS else 0


def succeeded(name: str, address: str) -> None:
    """Forget the attempts before one that was right."""
    cache.delete(_key(name, address))


def _count(key: str) -> int:
    cache.add(key, 0, timeout=WINDOW_SECONDS)
    try:
        return cache.incr(key)
    except ValueError:  # it was dropped at once: a cache that keeps nothing counts nothing
        return 0


def _key(name: str | None, address: str) -> str:
    window = int(time.time()) // WINDOW_SECONDS
    # A digest: a cache's keys may hold neither any character nor any length.
    told = repr((name.casefold() if name is not None else None, address, window))
    return f"shiftboss.login.{blake2b(told.encode(errors='replace'), digest_size=16).hexdigest()}"


def _is_public(address: str) -> bool:
    try:
        return ip_address(address).is_global
    except ValueError:  # a socket of this machine has none
        return False
