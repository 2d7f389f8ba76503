# SPDX-License-Identifier: Apache-2.0
"""The requests of the jobs, one declaration per job."""
