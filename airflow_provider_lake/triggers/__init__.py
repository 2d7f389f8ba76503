"""Loops of the triggerer: what tasks and assets wait for while no worker is held."""
