"""Worlds whose group changes: what the world itself does to nodes, clients and states."""

from collections.abc import Callable
from typing import Any

import pytest

from framework.com.events import Arrived, Deliver, Submit, Tick
from framework.errors import BadRequest, OboError
from framework.footprint import Footprint, Relation
from framework.ids import Node, Replica, object_of
from framework.sim.host_objects import host
from framework.sim.ledger import Ledger
from framework.sim.node import SimNode
from framework.sim.picture import of_traces
from framework.sim.run import Options, build, random_faults
from framework.sim.upheaval import Upheaval
from framework.sim.world import Faults, World
from objects.counter import Counter

ALL = Options(faults="all")
N1, N2, N3 = Node("n1"), Node("n2"), Node("n3")
QUIET = Faults(evicts=1)
CALM = {"repeat": 0.0, "cancel": 0.0, "nodes": 3, "least": 3, "clients": 3, "calls": 10, "pace": 20.0}


def calm(seed: int, faults: Faults, monkeypatch: pytest.MonkeyPatch, **shape: Any) -> World:
    """A world with these faults and no others; in a ``QUIET`` one the group may change, but nothing happens."""
    monkeypatch.setattr(Upheaval, "_evict", lambda self, chance: None)
    monkeypatch.setattr("framework.sim.run.random_faults", lambda seed, level: faults)
    return build(seed, Options({**CALM, **shape}, "all"))


def seen(world: World, event: str) -> list[Any]:
    return [r for t in world.traces() for r in t.records if r.event == event]


# which faults


def test_links_are_a_part_of_all() -> None:
    for seed in map(str, range(50)):
        links, every = random_faults(seed, "links"), random_faults(seed, "all")
        assert not links.members
        for kind in ("loss", "duplication", "reorder", "cuts", "pauses", "slow"):
            assert getattr(links, kind) == getattr(every, kind)
        assert random_faults(seed, "none") == Faults()


def test_about_one_of_ten_worlds_is_havoc() -> None:
    havoc = sum(random_faults(str(seed), "all").havoc for seed in range(1000))
    assert 60 < havoc < 150


def test_without_changes_of_the_group_nobody_is_suspected() -> None:
    """Cuts, pauses and late frames of the level ``links`` last longer than suspicion would."""
    for seed in range(30):
        world = build(seed)
        assert world.run()
        assert {t.header.life for t in world.traces()} == {1}
        assert not seen(world, "install") and not seen(world, "change")


def test_worlds_with_changes_have_enough_nodes_and_replicas() -> None:
    for seed in range(40):
        world = build(seed, ALL)
        assert 3 <= len(world.nodes) <= 5
        assert all(len(p.replicas) >= 2 for p in world.directory.objects.values())


def test_objects_of_people_do_not_live_with_changes() -> None:
    with pytest.raises(BadRequest, match="crashes"):
        host(1, {"counter": Counter}, faults=Faults(crashes=1))


# a node and its lives


def test_a_crash_ends_a_life_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(1, QUIET, monkeypatch)
    node = world.nodes[N3]
    world.at(50.0, node.crash)
    world.at(300.0, node.ask)
    world.run()
    first, second = node.traces[0], node.traces[-1]
    assert first.header.life == 1 and all(r.at <= 50.0 for r in first.records)
    assert first.records[-1].event not in ("out", "stop")
    assert second.header.life > 1 and second.records[-1].event == "stop"
    assert N3 in world.nodes[N1].view.members


def test_instances_vanish_with_their_node(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(1, QUIET, monkeypatch)
    node = world.nodes[N3]
    left: list[list[str]] = []

    def crash() -> None:
        node.crash()
        left.append([str(s) for s, r in world.performer.running.items() if r.node is node])  # type: ignore[attr-defined]
        left.append([digest for _, digest, done in world.performer.states(N3) if done])

    world.at(60.0, crash)
    world.at(61.0, node.ask)
    assert world.run() is not None
    assert left == [[], []]


def test_frames_to_a_process_that_is_gone_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(1, QUIET, monkeypatch)
    node, got = world.nodes[N2], []
    monkeypatch.setattr(SimNode, "_take", lambda self, event: got.append((self.name, event)))
    world.transmit(N1, N2, b"before")
    node.crash()
    node.ask()
    world.transmit(N1, N2, b"after")
    world.at(100.0, lambda: setattr(world, "_done", True))
    world.run(200.0)
    assert [e.data for n, e in got if n == N2 and isinstance(e, Arrived)] == [b"after"]


def test_a_node_that_is_down_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(1, QUIET, monkeypatch)
    node = world.nodes[N2]
    node.crash()
    assert not node.up and not node.serves
    node.step(Tick())
    node.ask()
    assert node.up and not node.serves and not node._inbox


# partitions


def test_a_partition_severs_every_pair_of_the_two_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = set()
    for seed in range(40):
        world = calm(seed, Faults(partitions=1), monkeypatch, nodes=4)
        ((start, end, text),) = world.story
        side, rest = ([Node(n) for n in part.split(", ")] for part in text.split(" cut from "))
        sizes.add(len(side))
        world.now = (start + end) / 2
        for a in world.nodes:
            for b in world.nodes:
                assert world.reaches(a, b) is ((a in side) is (b in side))
                if (a in side) is not (b in side):
                    assert world._wires[(a, b)].carry(b"x", world.now) == []
        world.now = end
        assert all(world.reaches(a, b) for a in side for b in rest)
    assert sizes == {1, 2, 3}


# the majority


def test_a_majority_stays_alive_but_for_havoc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at after each crash: of the lives in the newest view, enough are left to decide the next one."""
    left: list[tuple[bool, bool]] = []

    def crash(self: SimNode, real: Callable[[SimNode], None] = SimNode.crash) -> None:
        up: Upheaval = self.world.upheaval
        view = up.newest()
        real(self)
        if view is not None:
            left.append((self.world.faults.havoc, len(up.living(view)) >= view.majority))

    monkeypatch.setattr(SimNode, "crash", crash)
    for seed in range(20):
        world = build(seed, ALL)
        monkeypatch.setattr(world.upheaval, "_rescue", lambda: None)
        world.run(1190.0)
    assert len([1 for havoc, _ in left if not havoc]) > 6
    assert all(enough for havoc, enough in left if not havoc)
    assert not all(enough for havoc, enough in left if havoc)


# clients


def test_clients_find_another_home_and_get_all_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(3, QUIET, monkeypatch)
    clients = world.performer.clients.values()  # type: ignore[attr-defined]
    for client in clients:
        client.home = N3
    world.at(40.0, world.nodes[N3].crash)
    world.at(600.0, world.nodes[N3].ask)
    assert world.run()
    assert all(c.over and c.home != N3 for c in clients)
    assert all(call in c.answered for c in clients for call in c.wanted)


def test_a_repeated_call_has_its_number_and_the_session_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(3, QUIET, monkeypatch)
    submitted: dict[tuple[str, int], list[tuple[str, Submit]]] = {}

    def take(self: SimNode, com: Any, event: Any, real: Any = SimNode._as_member) -> None:
        if isinstance(event, Submit) and isinstance(event.caller, str):
            submitted.setdefault((event.caller, event.call), []).append((self.name, event))
        real(self, com, event)

    monkeypatch.setattr(SimNode, "_as_member", take)
    for client in world.performer.clients.values():  # type: ignore[attr-defined]
        client.home = N3
    world.at(60.0, world.nodes[N3].crash)
    world.at(600.0, world.nodes[N3].ask)
    assert world.run()
    again = [events for events in submitted.values() if len(events) > 1]
    assert again
    for (first_at, first), (second_at, second) in again:
        assert first_at == N3 and second_at != N3
        assert (first.parts, first.kind) == (second.parts, second.kind)
        group = {s.after.partition(" ")[0] for s in second.sessions}
        mine = [r.group for r in seen(world, "send") if r.node == N3 and r.invocation == f"{first.caller}/{first.call}"]
        assert not group & set(mine), "it would wait for its own first copy"


def test_with_nobody_there_clients_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(3, QUIET, monkeypatch)
    for node in world.nodes.values():
        world.at(30.0, node.crash)
        world.at(400.0, node.ask)
    assert world.run()
    assert all(c.over for c in world.performer.clients.values())  # type: ignore[attr-defined]
    assert {t.header.life for t in world.traces()} == {1, 2}
    durable = {p.name for p in world.directory.objects.values() if p.durable}
    assert durable and all((r.ticket != "") == (object_of(r.replica) in durable) for r in seen(world, "adopt"))


# states


def test_a_copy_of_a_state_is_a_state_of_its_own() -> None:
    ledger = Ledger(Relation([("a", "a")]))
    ledger.commit("c/1", Footprint("a", None, False))
    other = ledger.copy()
    assert (other.digest(), other.performed) == (ledger.digest(), 1)
    ledger.commit("c/2", Footprint("a", None, False))
    assert other.digest() != ledger.digest()
    other.commit("c/2", Footprint("a", None, False))
    assert other.digest() == ledger.digest()


def test_no_state_is_taken_while_something_runs_that_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(3, QUIET, monkeypatch)
    tried: list[Replica] = []

    def deliver(node: SimNode, effect: Deliver, real: Any = world.performer.deliver) -> None:
        real(node, effect)
        if not effect.cancelled and not effect.footprint.readonly and not tried:
            tried.append(effect.replica)
            with pytest.raises(OboError, match="is running there"):
                world.performer.copy(effect.replica)

    monkeypatch.setattr(world.performer, "deliver", deliver)
    world.run(300.0)
    assert tried


def test_who_joins_takes_the_state_of_a_donor_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(5, QUIET, monkeypatch)
    taken: dict[str, str] = {}
    adopted: list[tuple[str, str]] = []

    def send(donor: SimNode, effect: Any, real: Any = world.transfers.send) -> None:
        taken[donor.recorder.ticket(effect.replica)] = world.performer.ledgers[effect.replica].digest()  # type: ignore[attr-defined]
        real(donor, effect)

    def adopt(node: SimNode, com: Any, event: Any, real: Any = world.transfers.adopt) -> bool:
        done: bool = real(node, com, event)
        if done:
            ticket = node.trace.records[-1].ticket
            adopted.append((ticket, world.performer.ledgers[event.replica].digest()))  # type: ignore[attr-defined]
        return done

    monkeypatch.setattr(world.transfers, "send", send)
    monkeypatch.setattr(world.transfers, "adopt", adopt)
    world.at(100.0, world.nodes[N3].crash)
    world.at(110.0, world.nodes[N3].ask)
    assert world.run()
    assert adopted and all(taken[ticket] == digest for ticket, digest in adopted)


def test_a_refused_call_is_answered_or_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(3, QUIET, monkeypatch)
    client = world.performer.clients["c1"]  # type: ignore[attr-defined]
    both = set()
    for call in range(1, 40):
        client.moving, client.waits_for = False, None
        client.refused(call)
        both.add(call in client.answered)
        assert (call in client.answered) is not client.moving
    assert both == {True, False}


def test_a_picture_shows_nothing_beyond_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    world = calm(1, QUIET, monkeypatch)
    world.at(60.0, world.nodes[N3].crash)
    world.at(300.0, world.nodes[N3].ask)
    world.run()
    picture = of_traces(world.traces(), world.story)
    first = [v for visits in picture.at.values() for v in visits if v.node == N3 and v.arrived <= 60.0]
    assert first and all(v.last(picture.now) <= 60.0 for v in first)
