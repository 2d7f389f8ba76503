# SPDX-License-Identifier: Apache-2.0
"""Tables in the Apache Paimon format: their files on storage, and every operation on them."""
