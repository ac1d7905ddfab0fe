"""The key-value bucket that the server processes share. Knows NATS, nothing of members.

It is a JetStream stream, used as NATS's own key-value clients use it, so that the tools of NATS can show it. Those
clients cannot renew a key that expires, compare revisions when they delete, or let a deletion expire. So this module
publishes to the stream itself.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError, NoRespondersError, OutboundBufferLimitError
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.connection import OUT_OF_REACH, NatsConnection
from a2c_smcp.server.cluster.keys import Entry

__all__ = ["LARGEST_MESSAGE", "Bucket", "BucketWatch", "Take", "WrongRevisionError"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
Take = Callable[[Entry | None, int], None]
"""Takes an entry, and how many more wait. The entry is `None` if the bucket is empty."""

#: Bytes of a message between two processes. An announcement may have 512 KiB, and its header comes on top.
LARGEST_MESSAGE: Final = 768 * 1024
_NO_JETSTREAM: Final = "NATS has no JetStream, or no quorum for it"
#: For how many seconds the bucket remembers that a key was deleted or has expired, so that watches learn of it.
_MARKER: Final = 60
_WRONG_REVISION: Final = (10071, 10164)
_NOT_CLUSTERED: Final = 10074
_NO_MESSAGE: Final = 10037

_OPERATION: Final = "KV-Operation"
_MARKER_REASON: Final = "Nats-Marker-Reason"


class WrongRevisionError(Exception):
    """The key does not have the expected revision: somebody else was first."""


class Bucket:
    """Every method raises `InternalError` when NATS cannot do it now."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection
        self._js: JetStreamContext = connection.client.jetstream(timeout=tuning.TIMES.nats_answer)
        self.name = f"{connection.options.prefix}-members"
        self.stream = f"KV_{self.name}"
        self._subjects = f"$KV.{self.name}."

    async def open(self) -> None:
        """Make the bucket, unless it exists."""
        self._connection.check()
        version = self._connection.client.connected_server_version
        if (version.major, version.minor) < (2, 11):
            raise InternalError("NATS 2.11 or newer is needed")
        if self._connection.client.max_payload < LARGEST_MESSAGE:
            raise InternalError(f"NATS allows only small messages: its max_payload must be {LARGEST_MESSAGE} or more")
        replicas = min(3, len(self._connection.client.servers))
        try:
            info = await _answer(self._js.stream_info(self.stream))
        except _MissingError:
            await self._create(replicas)
        else:
            if not info.config.allow_msg_ttl or not info.config.subject_delete_marker_ttl:
                raise InternalError(
                    f"another program has made the bucket {self.name} in NATS; choose another --nats-prefix"
                )
            await self._grow(info, replicas)

    async def _create(self, replicas: int) -> None:
        try:
            await _answer(self._js.add_stream(self._config(replicas)))
        except _RefusedError as error:
            if error.err_code != _NOT_CLUSTERED or replicas == 1:
                raise
            # NATS is not a cluster: the two addresses belong to one server.
            await _answer(self._js.add_stream(self._config(1)))

    async def _grow(self, info: api.StreamInfo, replicas: int) -> None:
        if (info.config.num_replicas or 1) >= replicas:
            return
        try:
            await _answer(self._js.update_stream(info.config, num_replicas=replicas))
        except InternalError as error:
            logger.warning("the bucket %s stays with fewer copies than there are NATS servers: %s", self.name, error)

    def _config(self, replicas: int) -> api.StreamConfig:
        return api.StreamConfig(
            name=self.stream,
            description="the members of the offices of a2c servers",
            subjects=[f"{self._subjects}>"],
            storage=api.StorageType.FILE,
            num_replicas=replicas,
            max_msgs_per_subject=1,
            discard=api.DiscardPolicy.NEW,
            allow_rollup_hdrs=True,
            deny_delete=True,
            # Reads go to the leader, which has every write that was acknowledged.
            allow_direct=False,
            allow_msg_ttl=True,
            # Without this, watches are not told when a key expires.
            subject_delete_marker_ttl=_MARKER,
        )

    async def write(self, key: str, value: bytes, expected: int, seconds: int | None = None) -> int:
        """Write a key if it has the expected revision, and return the new revision. 0 means that the key is not there.

        Raises `WrongRevisionError` if the revision is another one. The key expires after `seconds`, if they are given.
        """
        return await self._publish(key, value, {}, expected, seconds)

    async def delete(self, key: str, expected: int) -> int:
        """Delete a key if it has the expected revision, and return the revision of the deletion.

        Raises `WrongRevisionError` if the revision is another one.
        """
        # A purge expires without leaving another marker. A deletion would leave one.
        headers = {_OPERATION: "PURGE", api.Header.ROLLUP.value: "sub"}
        return await self._publish(key, b"", headers, expected, _MARKER)

    async def read(self, key: str) -> Entry:
        """The key as the bucket has it now. The revision is 0 if the bucket does not know the key."""
        self._connection.check()
        try:
            found = await _answer(self._js.get_msg(self.stream, subject=f"{self._subjects}{key}"))
        except _MissingError as error:
            if error.err_code != _NO_MESSAGE:
                raise
            return Entry(key, 0, None)
        return Entry(key, found.seq or 0, None if _is_marker(found.headers) else found.data or b"")

    async def _publish(
        self, key: str, value: bytes, headers: dict[str, Any], expected: int, seconds: int | None
    ) -> int:
        self._connection.check()
        headers[api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value] = str(expected)
        began = elapsed()
        ack = await _answer(self._js.publish(f"{self._subjects}{key}", value, headers=headers, msg_ttl=seconds))
        self._connection.on_write(elapsed() - began)
        return ack.seq

    async def watch(self, take: Take, on_gap: Callable[[], None]) -> "BucketWatch":
        """Give every key to `take`, then every change, in the order of revisions. `on_gap` is called when something is
        missing. Then close the watch and make another one.
        """
        self._connection.check()
        watch = BucketWatch(self, take, on_gap)
        try:
            await watch.begin()
        except BaseException:
            await watch.close()
            raise
        return watch


class BucketWatch:
    """A consumer of our own. After a gap, nats-py's ordered consumer goes on where it stopped. It would miss keys
    that were deleted in the gap, if the bucket has forgotten the deletion by then.
    """

    def __init__(self, bucket: Bucket, take: Take, on_gap: Callable[[], None]) -> None:
        self._bucket = bucket
        self._take = take
        self._on_gap = on_gap
        self._subscription: Any = None
        self._consumer: str | None = None
        self._count = 0

    async def begin(self) -> None:
        bucket, client = self._bucket, self._bucket._connection.client
        inbox = client.new_inbox()
        self._subscription = await _answer(client.subscribe(inbox, cb=self._on_message))
        config = api.ConsumerConfig(
            deliver_subject=inbox,
            deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT,
            filter_subject=f"{bucket._subjects}>",
            ack_policy=api.AckPolicy.NONE,
            max_deliver=1,
            mem_storage=True,
            num_replicas=1,
            # After this many seconds NATS forgets a watch that nobody listens to.
            inactive_threshold=30,
        )
        info = await _answer(bucket._js.add_consumer(bucket.stream, config))
        self._consumer = info.name
        if info.num_pending == 0 and self._count == 0:
            self._take(None, 0)

    async def close(self) -> None:
        """Take nothing from now on."""
        self._take = _ignore
        with suppress(NatsError, APIError):
            if self._subscription is not None:
                await self._subscription.unsubscribe()
        if self._consumer is not None and self._bucket._connection.is_connected:
            # If this fails, NATS forgets the consumer by itself a little later.
            with suppress(NatsError, APIError):
                await self._bucket._js.delete_consumer(self._bucket.stream, self._consumer)

    async def _on_message(self, message: Msg) -> None:
        metadata = message.metadata
        self._count += 1
        if metadata.sequence.consumer != self._count:
            self._take = _ignore
            self._on_gap()
            return
        value = None if _is_marker(message.headers) else message.data
        key = message.subject[len(self._bucket._subjects) :]
        self._take(Entry(key, metadata.sequence.stream, value), metadata.num_pending)


def _ignore(entry: Entry | None, pending: int) -> None:
    pass


def _is_marker(headers: Any) -> bool:
    return headers is not None and (_OPERATION in headers or _MARKER_REASON in headers)


class _RefusedError(InternalError):
    """NATS refused a request."""

    def __init__(self, error: APIError) -> None:
        super().__init__(f"NATS refused the request: {error.description or error.code}")
        self.err_code = error.err_code


class _MissingError(_RefusedError):
    """The bucket or the key does not exist."""


async def _answer(asked: Awaitable[T]) -> T:
    """Await an answer of NATS. Errors become errors of ours, with a text for clients."""
    try:
        return await asked
    except NotFoundError as error:
        raise _MissingError(error) from None
    except (NoStreamResponseError, NoRespondersError, ServiceUnavailableError) as error:
        # When its disk is full, NATS itself says so.
        why = error.description if isinstance(error, ServiceUnavailableError) else None
        raise InternalError(f"NATS cannot do this: {why}" if why else _NO_JETSTREAM) from None
    except APIError as error:
        if error.err_code in _WRONG_REVISION:
            raise WrongRevisionError from None
        raise _RefusedError(error) from None
    except (NatsTimeoutError, TimeoutError):
        raise InternalError("NATS did not answer in time; it may have no quorum") from None
    except (OutboundBufferLimitError, ConnectionClosedError):
        raise InternalError(OUT_OF_REACH) from None
    except (NatsError, OSError) as error:
        logger.warning("NATS: %s: %s", type(error).__name__, error)
        raise InternalError("NATS failed; the server's log says how") from None
