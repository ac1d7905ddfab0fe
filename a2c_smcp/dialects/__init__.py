"""The dialects of the protocol: what peers of other releases send and expect. Pure: no sockets, no clocks, no files.

Three dialects are known. *Ours* is the protocol of `smcp`. *Older* peers, such as release 0.1.2 of the existing
implementation, speak a part of it, and need nothing from here. Peers of *0.4* have other names for tools, other shapes
of errors, and bodies that are fetched in chunks. No other room knows what 0.4 is; they ask here.
"""
