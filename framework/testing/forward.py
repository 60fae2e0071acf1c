"""Links that a test can break: each way from a node to a peer goes through a small TCP forwarder on loopback.

``cut`` drops the connections and refuses new ones, as a firewall that rejects. Silently, it holds every byte instead
and closes nothing, as a network that loses all packets: what was held goes on after ``heal``, as TCP sends it again.
"""

import asyncio
from typing import Literal

State = Literal["whole", "cut", "silent"]

_CHUNK = 1 << 16


class Forwarder:
    """One listening port; what connects there is connected to the target. Everything happens on one loop."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._state: State = "whole"
        self._delay = 0.0
        self._flows = asyncio.Event()  # not set while the link is silent
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """The address to dial instead of the target's."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return f"127.0.0.1:{port}"

    def set(self, state: State) -> None:
        self._state = state
        if state == "silent":
            self._flows.clear()
        else:
            self._flows.set()
        if state == "cut":
            self._drop()

    def slow(self, delay: float) -> None:
        """Every chunk waits for this many seconds. Chunks that come meanwhile go together after it."""
        self._delay = delay

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._drop()

    def _drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._state == "cut":
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            await self._flows.wait()
            if not writer.transport.is_closing():
                await self._join(reader, writer)
        except OSError:
            pass  # nobody listens at the target: the caller is dropped, as if it had dialled the target itself
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        self._writers.add(far_writer)
        ways = [
            asyncio.ensure_future(self._pump(reader, far_writer)),
            asyncio.ensure_future(self._pump(far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self._writers.discard(far_writer)
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                if self._delay:
                    await asyncio.sleep(self._delay)
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one end is gone: so is the connection
