"""Asking somebody elsewhere, and bringing the answer back: one bookkeeping for every way of passing a request on.

`asks` is the side that asks, `errands` is the side that answers, and `passing` says which errors pass by themselves.
These three are pure. They say what is to be done, and the adapter of each connection does it. `futures` is what the
adapters on asyncio share.
"""
