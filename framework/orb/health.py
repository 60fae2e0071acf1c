"""Is a node well? What container engines and load balancers ask, by ``grpc.health.v1``: it needs no token."""

import asyncio

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from framework.net.security import Credentials, Tls, distrust
from framework.orb.gateway import SERVICES, STATES

CALLS = next(name for name in SERVICES if name.endswith(".Gateway"))


def unwell(address: str, node: str, tls: Tls | None, states: bool, timeout: float) -> str:
    """Why this node is not well; empty if it takes calls and, with ``states``, has the states of all its replicas."""
    return asyncio.run(_unwell(address, node, tls, states, timeout))


async def _unwell(address: str, node: str, tls: Tls | None, states: bool, timeout: float) -> str:
    async with Credentials(tls).channel(address, peer=node) as channel:
        ask = health_pb2_grpc.HealthStub(channel).Check
        try:
            for service, lacks in ((CALLS, "takes no calls"), (STATES, "waits for the states of its replicas")):
                if service == CALLS or states:
                    told = await ask(health_pb2.HealthCheckRequest(service=service), timeout=timeout)
                    if told.status != health_pb2.HealthCheckResponse.SERVING:
                        return f"{node} {lacks}"
        except grpc.aio.AioRpcError as error:
            details = str(error.details())
            why = distrust(details) or f"{error.code().name}: {details}"
            return f"{node} does not answer on {address}: {why}"
    return ""
