# SPDX-License-Identifier: Apache-2.0
"""Tables as assets: their URIs, their events, and the snapshots that a run must read."""
