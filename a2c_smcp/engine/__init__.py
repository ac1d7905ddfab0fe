"""Engine.IO 4 and Socket.IO 5, both ends: who is connected, which packets travel how, and when a connection is over.

Our own, because the libraries spend tasks, timers and queues on every message, keep no bounds, and answer an ack on
whatever connection there is. Text only: binary messages are refused, because our protocol has none.

Read it in this order. The core is pure: bytes and texts in, events and texts out; its tests need no loop and no socket.

1. `packets`, `messages` and `frames` are what the wire carries: Engine.IO, Socket.IO, websockets.
2. `outgoing` is what waits for a peer that reads slowly. `bounds` has every limit, `events` what can happen.
3. `server_session` and `client_session` are the two ends of an Engine.IO session: polls, POSTs, the move to a
   websocket, pings, and what is too much. A move of ours that is not allowed raises `IllegalMoveError` and changes
   nothing. What the peer does wrong is a `BadPacket`, and at some point a `SessionEnded`.
4. `namespaces` is Socket.IO on a session: who is in which namespace, events, and acks.

The shells are thin: they own the sockets, the timers and the tasks, and decide nothing about the protocol.

5. `connection` is one connection of a server on asyncio. `EngineApplication` is what it tells.
6. `endpoint` is a server as an ASGI application: polls, POSTs, and websockets of any web server.
7. `direct` is a websocket under uvicorn without ASGI's messages: text in, decision, text out, in one callback.
"""
