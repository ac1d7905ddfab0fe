"""One seat for many processes: those of one user that want the same office share one agent's place in it.

It is held by a process of its own (`holder`), which the first one that wants it starts. They go through it over a local
socket (`seat_link`). It outlives the process that started it: hosts end their processes at will, some after every call,
and a server cancels the running calls of an agent that leaves.
"""
