"""`python -m shiftboss.cli`."""

import sys

from shiftboss.cli import main

if __name__ == "__main__":
    sys.exit(main())
