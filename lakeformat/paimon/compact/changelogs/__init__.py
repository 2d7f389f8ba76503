# SPDX-License-Identifier: Apache-2.0
"""The changelogs that compactions write, by ``changelog-producer``."""
