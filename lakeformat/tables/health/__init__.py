# SPDX-License-Identifier: Apache-2.0
"""The part of a health report that tables of all formats share: verdict, score and reasons."""
