# SPDX-License-Identifier: Apache-2.0
"""Operations on tables of any format."""
