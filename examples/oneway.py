"""One-way calls: nobody waits for an answer, and those of one client that conflict keep their order all the same.

python -m examples.oneway [--at host:port,...]
"""

from examples.nodes import running
from framework import connect
from objects.file import File

CHAPTERS = 4
VERSIONS = 100

if __name__ == "__main__":
    with running() as addresses, connect(addresses) as orb:
        file = orb.object(File, "file")
        for version in range(1, VERSIONS + 1):
            for chapter in range(CHAPTERS):
                # Two writes of one block conflict: their order is kept. Writes of different blocks do not wait for each
                # other. A method must return None to be called one-way.
                file.write.oneway(chapter, f"chapter {chapter}, version {version}".encode())
        print(VERSIONS * CHAPTERS, "writes are on their way, none was waited for")

        # A read conflicts with a write, and this client wrote before it reads: every replica shows the last version.
        for chapter in range(CHAPTERS):
            seen = {reply.replica: reply.value.decode() for reply in orb.crec(orb.mcast(file.read.request(chapter)))}
            texts = sorted(set(seen.values()))
            print(f"{len(seen)} replicas say:", *texts)
