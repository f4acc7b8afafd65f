"""`python -m armid`: the same as the `armid` command."""

from armid.cli import main

main()
