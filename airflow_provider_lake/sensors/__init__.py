"""Sensors for tables; all of them can wait in the triggerer."""
