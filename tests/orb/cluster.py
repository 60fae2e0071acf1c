"""Three real nodes in one process, on one loop, over real gRPC; and a client of them."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

from framework.orb.client import AsyncOrb
from framework.orb.config import parse
from framework.orb.node import Node
from framework.sim.oracle import judge
from framework.trace.check import load

OBJECTS = """
[objects.bank]
class = "objects.bank:Bank"
[objects.counter]
class = "objects.counter:Counter"
on = ["n2", "n3"]
[objects.shop]
class = "tests.orb.things:Shop"
on = ["n1", "n2"]
[objects.odd]
class = "tests.orb.things:Odd"
"""


def toml(ports, objects=OBJECTS):
    nodes = "".join(f'n{i + 1} = "127.0.0.1:{p}"\n' for i, p in enumerate(ports))
    return f"[nodes]\n{nodes}{objects}"


class Cluster:
    def __init__(self, ports, trace, objects=OBJECTS, base=Path()):
        self.config = parse(toml(ports, objects), base)
        self.trace = trace
        self.nodes = {}

    async def start(self):
        for name in self.config.addresses:
            node = self.nodes[name] = Node(self.config, name, self.trace)
            await node.start()
        async with asyncio.timeout(60):
            for node in self.nodes.values():
                await node.joined.wait()

    async def stop(self):
        async with asyncio.timeout(60):
            await asyncio.gather(*(n.drain() for n in self.nodes.values()))
        for node in self.nodes.values():
            await node.stop()

    def client(self, *names, **options):
        """A call has a minute, not the usual 10 s, unless ``options`` say so."""
        return AsyncOrb(
            [self.config.address(n) for n in names or self.config.addresses], **{"timeout": 60.0, **options}
        )

    def objects(self, name):
        found = [(n, r) for n in self.nodes.values() for r in n.life.residents if r.startswith(f"{name}@")]
        return [n.object(r) for n, r in found]


@asynccontextmanager
async def cluster(ports, trace: Path, judged=True, objects=OBJECTS, base=Path()):
    made = Cluster(ports, trace, objects, base)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()
    if judged:
        verdict = judge(load(sorted(trace.glob("*.jsonl"))))
        assert not verdict.violations, verdict.violations
        assert verdict.delivered or not verdict.requests
