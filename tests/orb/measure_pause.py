"""How long calls wait while a large state is captured: the numbers of docs/state.md.

    GRPC_ENABLE_FORK_SUPPORT=0 python -m tests.orb.measure_pause

A node's loop answers questions over gRPC, asked by another process every two milliseconds. Then the state of an object
with a million entries is captured on that loop, and written to a file as a donor does it.
"""

import asyncio
import statistics
import subprocess
import sys
import time

import grpc.aio

from framework.ids import Node, Replica
from framework.net import options
from framework.net.peers import Peers, hello
from framework.net.wire.com_pb2 import Question
from framework.net.wire.com_pb2_grpc import LinkStub
from framework.orb.moving import capture
from framework.orb.moving.captures import Held
from framework.orb.moving.offer import For, Offer
from framework.testing.ports import held
from tests.orb.carrying import Driver
from tests.orb.movable import Anything

ENTRIES = 1_000_000
ROUNDS = 7
EVERY = 0.002


async def ask(address):
    """In its own process: (when, how long) of each question, in lines."""
    async with grpc.aio.insecure_channel(address, options=options.channel()) as channel:
        stub = LinkStub(channel)
        while True:
            began = time.perf_counter()
            await stub.Explain(Question(data=b""), metadata=hello(Node("n2")), wait_for_ready=True)
            took = time.perf_counter() - began
            sys.stdout.write(f"{began} {took}\n")
            sys.stdout.flush()
            await asyncio.sleep(EVERY)


async def written(target, forking):
    """Seconds at the cut, when it was, and when all was written."""
    began = time.perf_counter()
    taken = capture(target) if forking else Held(target.get_state())
    cut = time.perf_counter() - began
    offer = Offer(For(Replica("thing@n1"), Node("n2")), 1, "t", b"", taken, None)
    while offer.end is None:
        await asyncio.sleep(0.01)
    size, done = offer.end.total, time.perf_counter()
    offer.close("measured")
    return cut, began, done, size


async def measure():
    with held(1) as (port,):
        await measure_at(port)


async def measure_at(port):
    address = f"127.0.0.1:{port}"
    peers = Peers(Node("n1"), {Node("n1"): address, Node("n2"): "127.0.0.1:1"}, Driver())
    peers.explain = lambda question: question
    server = grpc.aio.server(options=options.server())
    peers.serve_on(server)
    assert server.add_insecure_port(address)
    await server.start()
    target = Anything()
    target.value = {f"key {n}": n for n in range(ENTRIES)}
    asker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.orb.measure_pause", address, stdout=subprocess.PIPE
    )
    asked = []

    async def listen():
        async for line in asker.stdout:
            asked.append(tuple(map(float, line.split())))

    listening = asyncio.ensure_future(listen())
    await asyncio.sleep(2)
    spans = {"nothing else": [(0.0, time.perf_counter())]}
    cuts = {}
    for name, forking in (("fork", True), ("no fork", False)):
        runs = []
        for _ in range(ROUNDS):
            runs.append(await written(target, forking))
            await asyncio.sleep(0.5)
        spans[name] = [(began, done) for _, began, done, _ in runs]
        cuts[name] = [cut for cut, *_ in runs]
        whole = statistics.median(done - began for _, began, done, _ in runs)
        print(f"{name}: cut {statistics.median(cuts[name]) * 1000:.1f} ms, whole {whole:.2f} s, {runs[0][3]:,} bytes")
    asker.terminate()
    await asker.wait()
    await listening
    for name, times in spans.items():
        per = [[took for at, took in asked if began - 0.001 <= at <= done] for began, done in times]
        usual = statistics.median(took for some in per for took in some)
        longest = statistics.median(max(some, default=0.0) for some in per)
        print(f"calls, {name}: median {usual * 1000:.2f} ms, the longest {longest * 1000:.1f} ms")
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1]) if len(sys.argv) > 1 else measure())
