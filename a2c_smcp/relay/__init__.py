"""Asking somebody elsewhere, and bringing the answer back: one bookkeeping for every way of passing a request on.

`asks` is the side that asks, `errands` the side that answers, `passing` says which errors pass by themselves. All three
are pure: no sockets, no event loop, no clock. They say what is to be done, and an adapter beside each wire does it.
`futures` is what adapters on asyncio share.
"""
