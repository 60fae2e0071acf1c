"""Nodes and their clients: what a call goes through on both sides of the com layer."""

import framework.net  # noqa: F401  # before gRPC: it reads what is set there when it is imported
