# SPDX-License-Identifier: Apache-2.0
"""The arguments of operators, sensors and decorators: their types and their checks."""
