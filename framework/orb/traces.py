"""The traces of a node, for whoever asks with the right token (proto/trace.proto, ``Traces``): ``obo load`` does.

A node gives what its own lives have written into its trace directory, and nothing else that may lie there: other nodes
may write into the same one. Files are read in a thread and in pieces, so that who asks does not hold up the node.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from framework.errors import BadRequest, OboError, Unavailable
from framework.ids import Node
from framework.net.wire import trace_pb2_grpc
from framework.net.wire.trace_pb2 import (
    ListTracesRequest,
    ListTracesResponse,
    ReadTraceRequest,
    TraceInfo,
    TracePiece,
)
from framework.orb.guard import Guard
from framework.orb.status import shown, status_of, trailing
from framework.orb.who import Caller

PIECE = 256 * 1024


class Traces(trace_pb2_grpc.TracesServicer):
    """The names are those of trace.proto."""

    def __init__(self, node: Node, directory: Path | None, guard: Guard) -> None:
        self._node = node
        self._directory = directory
        self._guard = guard

    def serve_on(self, server: Any) -> None:
        trace_pb2_grpc.add_TracesServicer_to_server(self, server)

    async def ListTraces(self, request: ListTracesRequest, context: Any) -> ListTracesResponse:  # noqa: N802
        caller = await self._admit(context)
        found = await asyncio.to_thread(self._found)
        traces = [TraceInfo(name=path.name, size=size) for path, size in found.items()]
        traced = self._directory is not None
        return ListTracesResponse(node=self._node, traced=traced, traces=traces, caller=caller.name)

    async def ReadTrace(self, request: ReadTraceRequest, context: Any) -> AsyncIterator[TracePiece]:  # noqa: N802
        await self._admit(context)
        found = await asyncio.to_thread(self._found)
        path = next((p for p in found if p.name == request.name), None)
        if path is None:
            await _refuse(context, BadRequest(f"{self._node} has no trace {request.name!r:.80}; ListTraces names them"))
            return
        left = request.size or found[path]
        try:
            with path.open("rb") as file:
                while left and (data := await asyncio.to_thread(file.read, min(left, PIECE))):
                    left -= len(data)
                    yield TracePiece(data=data)
        except OSError as error:
            await _refuse(context, Unavailable(f"{self._node}: {path.name} cannot be read: {error.strerror}"))

    async def _admit(self, context: Any) -> Caller:
        caller = await self._guard.admit(context)
        try:
            caller.must_be_admin("reading traces")
        except OboError as error:
            await _refuse(context, error)
        return caller

    def _found(self) -> dict[Path, int]:
        """This node's own files with their sizes: of all its lives."""
        mine = re.compile(re.escape(self._node) + r"(\.since\d+)?\.jsonl\Z")
        if self._directory is None or not self._directory.is_dir():
            return {}
        return {p: p.stat().st_size for p in sorted(self._directory.iterdir()) if mine.match(p.name) and p.is_file()}


async def _refuse(context: Any, error: OboError) -> None:
    await context.abort(status_of(error), shown(error), trailing(error))
