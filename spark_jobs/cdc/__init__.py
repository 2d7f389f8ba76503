# SPDX-License-Identifier: Apache-2.0
"""Change messages in JSON lines, of Debezium, Canal and Maxwell, read as columns."""
