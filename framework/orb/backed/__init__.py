"""Replicas whose objects keep their state in a store of their own (framework.declare.backed, docs/backed.md).

stores      the stores of a node: opened once in a process, whatever lives the node has in the group
checked     the checksum of each note in a store
recalled    what a store says when a life is over: what is in it, and what is in doubt
resident    such a replica in one life of the node
committer   the thread that performs what changes it, batch after batch
parts       what is done for transactions: performed, taken back, and performed again when they are committed
writing     one instance of that kind
"""
