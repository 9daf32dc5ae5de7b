"""`python -m wiretape` is `wiretape`."""

import sys

from wiretape.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
