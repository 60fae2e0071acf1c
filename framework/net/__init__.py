"""gRPC: streams between nodes, sessions of clients, certificates, tokens."""

import os

# gRPC reads this when it is imported. Left to itself it tries to stop its threads at every fork of the process, and
# says on stderr that it cannot. Children of a node never touch it: see orb/moving/forked.py.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
