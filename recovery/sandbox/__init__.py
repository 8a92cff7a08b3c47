"""A stand-in downstream: providers with their own state, a dial for every fault, a ledger that never lies.

It runs in its own process on its own SQLite file and imports nothing else of this repository, so that it can
judge the system under test from outside: how often did each intent really take effect?
"""
