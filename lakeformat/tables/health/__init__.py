# SPDX-License-Identifier: Apache-2.0
"""Verdict, score and reasons of health reports, for tables of any format."""
