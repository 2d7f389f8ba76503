# SPDX-License-Identifier: Apache-2.0
"""Run ``lake`` as ``python -m lakeformat.cli``."""

from lakeformat.cli.app import main

if __name__ == "__main__":
    main()
