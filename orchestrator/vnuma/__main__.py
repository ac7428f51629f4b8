"""`python -m vnuma`: the same as the command `vnuma`."""

from vnuma.cli.main import main

main()
