"""Is a node well? What container engines and load balancers ask, by ``grpc.health.v1``: it needs no token."""

import asyncio
from typing import Any, Protocol

import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from framework.net.security import Credentials, Tls, distrust
from framework.net.wire import com_pb2, orb_pb2, trace_pb2

SERVICES = tuple(
    service.full_name for file in (com_pb2, orb_pb2, trace_pb2) for service in file.DESCRIPTOR.services_by_name.values()
)
STATES = "obo.states"  # a name for health alone: it takes calls, and has the states of all its replicas
CALLS = next(name for name in SERVICES if name.endswith(".Gateway"))
UNWELL = "takes calls, but is not well: obo status says why"


def unwell(address: str, node: str, tls: Tls | None, states: bool, timeout: float) -> str:
    """Why this node is not well; empty if it takes calls and, with ``states``, is well in every respect: a member of
    the current view that has the states of all its replicas."""
    return asyncio.run(_unwell(address, node, tls, states, timeout))


async def _unwell(address: str, node: str, tls: Tls | None, states: bool, timeout: float) -> str:
    async with Credentials(tls).channel(address, peer=node) as channel:
        ask = health_pb2_grpc.HealthStub(channel).Check
        try:
            for service, lacks in ((CALLS, "takes no calls"), (STATES, UNWELL)):
                if service == CALLS or states:
                    told = await ask(health_pb2.HealthCheckRequest(service=service), timeout=timeout)
                    if told.status != health_pb2.HealthCheckResponse.SERVING:
                        return f"{node} {lacks}"
        except grpc.aio.AioRpcError as error:
            details = str(error.details())
            why = distrust(details) or f"{error.code().name}: {details}"
            return f"{node} does not answer on {address}: {why}"
    return ""


class Host(Protocol):
    """The node."""

    def refusal(self) -> str: ...
    def unwell(self) -> str: ...


class HealthServicer(health.aio.HealthServicer):  # type: ignore[misc]  # it comes without types
    """Answers from what the node is at this moment. Who watches hears of a change with the next tick."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._told: dict[str, bool] = {}
        self._parts = False  # it says NOT_SERVING from here on

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> health_pb2.HealthCheckResponse:  # noqa: N802
        if self._parts or request.service not in (*SERVICES, STATES):
            return await super().Check(request, context)
        return health_pb2.HealthCheckResponse(status=_serving(self._is_well(request.service)))

    @property
    def changed(self) -> list[str]:
        """What those who watch have not been told yet."""
        return [s for s in (*SERVICES, STATES) if self._told.get(s) != self._is_well(s)]

    async def refresh(self) -> None:
        for service in self.changed:
            yes = self._told[service] = self._is_well(service)
            await self.set(service, _serving(yes))

    async def part(self) -> None:
        self._parts = True
        await self.enter_graceful_shutdown()

    def _is_well(self, service: str) -> bool:
        return not (self._host.unwell() if service == STATES else self._host.refusal())


def _serving(yes: bool) -> Any:
    return health_pb2.HealthCheckResponse.SERVING if yes else health_pb2.HealthCheckResponse.NOT_SERVING
