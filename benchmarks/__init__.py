"""Questions about speed and memory; each compares this library with a floor or a peer in one
run.
"""
