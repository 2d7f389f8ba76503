"""``python -m lakeformat.cli`` is ``lake``."""

from lakeformat.cli.app import main

if __name__ == "__main__":
    main()
