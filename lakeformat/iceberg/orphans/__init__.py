# SPDX-License-Identifier: Apache-2.0
"""Orphan files: files in a table's directory that neither its metadata nor a staged result refers
to.
"""
