"""Replicas that come back after a crash: ``Object.durable = True`` (docs/durable.md).

``disk.Disk`` is the store of a node, with a journal for each durable replica; ``journaling.Journaling`` writes down
what a life performs; ``restore.restored`` performs it again when the node starts.
"""
