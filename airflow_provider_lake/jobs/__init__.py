# SPDX-License-Identifier: Apache-2.0
"""The parts of every operator that runs a job: request, commit identity, result, failures."""
