"""The simulation: random runs, people, faults and moved clocks, replayed exactly by a seed.

One process acts as several workers. Each call of a worker is a greenlet that is stopped at the failpoints and at the
network; the scheduler of a seed chooses who goes on, who dies, who sleeps past its lease. The record is a real
PostgreSQL, the other side the sandbox's own code, without sockets; time is the scheduler's. After every move the
invariants are checked, each by a function of its number; the sandbox's ledger judges what really happened.
"""
