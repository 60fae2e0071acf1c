"""The protocol, pure: no network, no clock, no threads. ``Com.step(event, now) -> effects`` is its entrance.

``docs/protocol.md`` is the specification. This is the contract of a *driver*: the program that owns a ``Com``, feeds it
events, and carries out the effects. ``framework.orb.life`` is the driver of a real node, ``framework.sim.node`` that of
a simulated one. Types of events and effects are in ``framework.com.events``, ``event`` and ``telling``.

**Feeding**

1. Feed one event at a time. Carry out its effects, in their order, before you feed the next one. While you carry them
   out, do not feed: put what comes up (a method that ends at once, an answer) into a queue and feed it afterwards.
2. ``now`` never goes back, and has the unit of ``Timing``. Feed ``Tick`` several times in each ``Timing.delta``:
   time-outs, resends, heartbeats, the failure detector and the deadlock detector look only then.
3. If ``step`` raises an ``OboError``, nothing has changed. ``BadMessage`` (from ``Arrived``): drop the frame and end
   the stream. ``BadRequest``, ``Unavailable``, ``ResourceExhausted``: tell the caller that the call did not happen.
   After any other exception the state may be half changed: stop the node at once, as if it had crashed.

**Becoming a member**

4. Begin as an ``Outsider``. Give it an incarnation higher than any that a node of this name ever had, the version of
   the last view that this node remembers, the states that it holds, and 16 random bytes for a formation. Feed it
   ``Arrived`` and ``Tick``; carry out its ``Transmit``.
5. On ``Admitted``: if the node has durable replicas, write the version of the view to disk first. Then make a ``Com``
   with ``directory.at(view)`` and the same ``holds``, set ``com.member.last`` to the decision if there is one, and feed
   the frames that came early.
6. On ``Installed``: write the version down before you acknowledge anything that a durable replica does in this view;
   look again for states (13) and for clients' destinations.

**Frames**

7. ``Wake(peer)``: feed ``Writable(peer)`` once, as soon as the transport can take a frame. Waiting a little makes
   frames larger. ``Transmit(peer, data)``: hand the bytes over and forget them; they may be lost, repeated or
   reordered, and ``peer`` need not be a member. Feed ``Arrived(peer, data)`` for what comes, and ``Connected(peer)``
   when the transport to a peer is new. Where a large frame comes in pieces, feed ``Heard(peer)`` for each: the peer is
   there, though nothing else comes from it meanwhile.

**Performing**

8. ``Deliver``: perform the request on the replica, and feed exactly one ``Completed`` for it, later than this step.
   Several may be under way at once: those are compatible, or one is a call back to the other, which waits. If
   ``cancelled``, perform nothing and complete with ``ok=False``. With riders, perform each of them in their order, but
   for ``skips``, and say in ``rides`` what became of each. Requests to ``tran`` are performed by the com layer itself.
9. A method that raises leaves no trace: undo what it did, then complete with ``ok=False``. An instance that ended well
   stays undoable until ``Settle`` if ``tran`` is set, or if it called objects as part of its own transaction. On
   ``Settle`` keep what it did, or undo it, before you carry out any effect that follows.
10. An instance calls others by ``Submit`` and ``Collect`` with its sid, and is told by ``Received``. It numbers its
    calls upwards, alike at all replicas. Complete it when it waits for no receipt. ``Stop``: end it, undone, as soon as
    that can be done; if it cannot be stopped let it run.

**Durability before sending**

11. When an instance of a durable replica has been performed, append its record to the journal, and complete it with
    ``safe=False``. When the record is on disk feed ``Safe``. The com layer holds back the answer until then, and lets
    conflicting requests begin. It cannot know what an instance has read, so see to the rest yourself: an instance, also
    one that only reads, is not safe before those that it follows, and submits nothing before they are. ``Decided``:
    append the outcome before you carry out any effect that follows, and feed ``Safe`` when it is on disk.

**State transfer**

12. ``Snapshot``: take the state of the replica at this moment, before the next effect. Send it with ``part`` to the
    node named. The state of a durable replica leaves when every outcome that tran of this node has delivered is on
    disk.
13. For each replica in ``com.unready`` get a state. ``com.handover.seeds`` names the replica whose held state is the
    one to begin with (``NOBODY``: the initial one); without an entry ask one of the nodes in ``com.unready[replica]``,
    where the driver feeds ``Give``. When it is here, ask ``com.handover.may_take``, adopt the state as a whole, and
    feed ``Take``.
14. A replica that took another state than the one it held: feed ``Again`` for each request that was performed in the
    held one and is not among the replies. If parts of transactions on disk have no outcome, feed ``Doubt`` before the
    state is used, and wait for ``Resolved``.

**Clients**

15. A client's call is a ``Submit`` by name, its transaction ``Begin``, ``Submit`` with ``tran``, and ``Decide``.
    ``Accepted``: give the client ``com.session`` to keep. ``Received``: give it the responses and ``com.session``; if
    not ``complete``, tell it that the receipt was not met. Feed ``Leave`` when the client is gone for good.
16. While ``com.crowded``, read nothing from clients. While ``Isolated(yes=True)`` refuse ordered calls, and send
    clients to other nodes.

**The end**

17. To leave in order take no more calls, let what is open end, then feed ``Depart``. ``Out`` ends the life, for
    whatever reason. Carry out all other effects of that step first. Then keep the states of whole requests, each with
    ``com.handover.keep``, feed this ``Com`` nothing more, and begin again at 4.
18. Effects of ``telling`` change nothing: write them to the trace if you asked for them (``told=True``).

Two things do not pass through ``step`` today: ``com.spot`` (a call to a replica at its home node is performed and noted
at once) and ``com.calls.check`` (a call is judged before it waits to travel with others). Drivers use both between two
steps.
"""
