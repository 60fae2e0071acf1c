"""gRPC: streams between nodes, sessions of clients, certificates, tokens.

gRPC reads its environment when it is imported, so it is imported here, before anybody else can do it.
"""

import os
from importlib.metadata import version

# Left to itself gRPC tries to stop its threads at every fork of the process, and says on stderr that it cannot.
# Children of a node never touch it: see orb/moving/forked.py.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

#: To read or write a stream takes three threads of gRPC's newer engine. With its older one the thread that waits for
#: the stream does it all: 30 % less processor time, and a third less until the answer is here.
ONE_THREAD = "-event_engine_client,-event_engine_listener"
_KNOWN_IN = ("1.85.",)  # another version may not have both engines, and would complain about the name
_NAME = "GRPC_EXPERIMENTS"

_chosen = _NAME not in os.environ and version("grpcio").startswith(_KNOWN_IN)
if _chosen:
    os.environ[_NAME] = ONE_THREAD
import grpc  # noqa: E402, F401

if _chosen:
    del os.environ[_NAME]  # what this process starts makes up its own mind
