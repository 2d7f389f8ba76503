"""Questions about speed and memory. Each compares this library, in one run, with another library
(the peer) or with the unavoidable part of the work (the floor).
"""
