# SPDX-License-Identifier: Apache-2.0
"""Reads and writes ORC files, and checks them before Arrow's library reads them."""
