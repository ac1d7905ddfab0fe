"""One seat for many processes: the processes of one user that want the same office share one agent's seat in it.

A process of its own holds the seat (`holder`). The first process that wants the seat starts the holder, and all of them
use it over a local socket (`seat_link`). The holder outlives the process that started it: hosts end their processes at
any time, some after every call, and a server cancels the running calls of an agent that leaves. A process that is alone
for some time goes around the holder (`lending`, `own_way`).
"""
