# SPDX-License-Identifier: Apache-2.0
"""Parts that all jobs share: command line, process, Spark tasks and progress."""
