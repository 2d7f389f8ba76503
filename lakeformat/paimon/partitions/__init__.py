# SPDX-License-Identifier: Apache-2.0
"""Operations on whole partitions: list, expire, drop, and mark as done."""
