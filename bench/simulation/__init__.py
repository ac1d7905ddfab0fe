"""Many server processes in one, on a virtual clock: the real membership code at sizes that no machine here has.

`python -m bench.simulation` runs it. The registry, the watcher, the replica and the claims are the real ones. NATS is
not: it is a queue with a service time, which is measured with a real NATS first.
"""
