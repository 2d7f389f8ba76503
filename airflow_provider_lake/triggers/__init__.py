"""Triggers: wait for tables in the triggerer, while no worker is used."""
