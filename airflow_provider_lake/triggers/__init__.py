# SPDX-License-Identifier: Apache-2.0
"""Triggers: wait for tables in the triggerer, while no worker is used."""
