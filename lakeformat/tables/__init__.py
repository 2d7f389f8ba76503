# SPDX-License-Identifier: Apache-2.0
"""Operations and reports that tables of all formats share."""
