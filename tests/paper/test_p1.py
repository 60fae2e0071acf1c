"""P1, on ordering requests and responses by what they do to objects and by the information they carry.

P1 types a request by whether it changes the state (S or N) and whether it carries input (I or N), a response by
whether it carries output (O or N). The scan of its tables has rows and columns headed IS, IN, NS, NN, O, N, while the
text says SI, SN, NI, NN: the tables write the letter for input first. Read like that, Tables 1 and 3 mark a cell only
where the first message changes state (rows IS and NS), and where the second one changes state or is an O-response
(one cell more, IS before IN, in Table 3; the row NS does not have it). Table 2 is missing in the scan.

Here the type of the *first* message narrows the order: one that changes nothing is forgotten with its instance
(protocol.md §2.2). The type of the second message does not; so every marked cell is ordered, and a few are that P1
leaves open. Input makes no difference at all.
"""

from collections.abc import Callable
from itertools import product

import pytest

from framework.com.messages import Request, Response
from framework.com.receipt import CREC, DREC, SREC, quorum
from framework.declare import declaration
from objects.bank import Bank
from objects.file import File
from tests.paper.stage import Instance, Stage

SetUp = Callable[[str], Stage]

# P1 §2.2 and §4.1


def test_compatible_operations_and_outputs() -> None:
    """P1 §2.2: two operations are compatible iff both orders give the same state. By that alone read and write are
    compatible: read changes nothing. Outputs tell the order, so here, as in P3 §2.2, the two conflict."""
    one, two = File(), File()
    one.write(0, b"x")
    seen_after = one.read(0)
    seen_before = two.read(0)
    two.write(0, b"x")
    assert one.blocks == two.blocks
    assert seen_after != seen_before
    assert declaration(File).relation.methods("read", "write")


def type_of(message: Request | Response) -> str:
    """P1 §4.1: SI, SN, NI, NN for a request; O or N for a response."""
    if isinstance(message, Response):
        return "O" if message.output else "N"
    (part,) = message.parts
    return ("N" if part.footprint.readonly else "S") + ("I" if message.args else "N")


def test_message_types(set_up: SetUp) -> None:
    """P1 §2.3, §4.1: the request of deposit is SI and its response N; that of a read is NN and its response O."""
    reads = [name for name, method in declaration(Bank).methods.items() if method.readonly]
    assert sorted(reads) == ["audit", "balance"]
    stage = set_up("c k")
    stage.object("bank", "k", "deposit/audit", reads=" ".join(reads))
    client = stage.client("T", "c")
    client.send("bank.deposit", "deposit", "async", SREC, data=b"5")
    stage.instance("deposit", "bank@k").commit()
    client.send("bank.audit", "audit", "async", SREC)
    stage.instance("audit", "bank@k").commit(b"5")
    posted = [m for n in "ck" for m in stage.com(n).posted if isinstance(m, Request | Response)]
    assert [type_of(m) for m in posted] == ["SI", "NN", "N", "O"]


# P1 §4.2 tables

TYPES = ("SI", "NI", "SN", "NN")
PAIRS = list(product(TYPES, repeat=2))
MARKED_1 = {(one, two) for one, two in PAIRS if one[0] == two[0] == "S"}
MARKED_3 = MARKED_1 | {("SI", "NI")}


def send(actor: Instance, family: str, kind: str, to: str, name: str) -> None:
    """A request of this type. Methods of family a conflict with each other, not with those of family b."""
    method = family if kind[0] == "S" else f"{family}read"
    actor.send(f"d.{method}@{to}", name, data=b"in" if kind[1] == "I" else b"")


def send_send(set_up: SetUp, one: str, two: str, conflicting: bool) -> Stage:
    """m1 is sent by op1, m2 by op1 or, when that has ended, by op2. At k, m1 lacks agreement and m2 needs none."""
    stage = set_up("c i k l")
    stage.object("o", "i", "w/w")
    stage.object("d", "k l", "a/a a/aread b/b b/bread", reads="aread bread", at_once=True)
    stage.hold("l->k")
    stage.client("T1", "c").oneway("o.w", "op1")
    op = stage.instance("op1", "o@i")
    send(op, "a", one, "k,l", "m1")
    if conflicting:
        op.commit()
        stage.client("T2", "c").oneway("o.w", "op2")
        op = stage.instance("op2", "o@i")
    send(op, "b", two, "k", "m2")
    return stage


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_s1_one_instance_remembers_all_it_sends(set_up: SetUp, one: str, two: str) -> None:
    """P1 §4.2.1, S1, Fig. 6(1): messages of one instance are ordered whatever their types; a read, too."""
    stage = send_send(set_up, one, two, conflicting=False)
    assert stage.precedes("m1", "m2")
    assert stage.waiting("d@k") == ["m1", "m2"]


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_table_1_send_send_of_conflicting_instances(set_up: SetUp, one: str, two: str) -> None:
    """P1 Table 1, S2.1, Fig. 6(2.1): each pair of request types. A read is forgotten with the instance that sent it:
    m2 does not wait for it. All marked cells are ordered, and those with m1 = S, m2 = N as well (see the module)."""
    stage = send_send(set_up, one, two, conflicting=True)
    ordered = one[0] == "S"
    assert ordered or (one, two) not in MARKED_1
    assert stage.precedes("m1", "m2") == ordered
    assert stage.delivered("d@k") == ([] if ordered else ["m2"])
    stage.settle()
    assert stage.delivered("d@k") == (["m1", "m2"] if ordered else ["m2", "m1"])


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_table_3_receive_send_of_conflicting_instances(set_up: SetUp, one: str, two: str) -> None:
    """P1 Table 3, R2.1, Fig. 7(2.1): op1 performs m1 and ends, op2 conflicts with op1 and sends m2. If m1 only read,
    op2 does not depend on it. Again the marked cells are ordered."""
    stage = set_up("c e i k")
    stage.object("o", "i k", "w/w w/read v/w v/read", reads="read qread")
    stage.client("T0", "e").oneway("o.v@k", "busy")
    data = b"in" if one[1] == "I" else b""
    stage.client("T1", "c").send("o.w" if one[0] == "S" else "o.read", "m1", data=data)
    stage.instance("m1", "o@i").commit()
    stage.client("T2", "c").oneway("o.w@i", "op2")
    data = b"in" if two[1] == "I" else b""
    stage.instance("op2", "o@i").send("o.q@k" if two[0] == "S" else "o.qread@k", "m2", data=data)
    ordered = one[0] == "S"
    assert ordered or (one, two) not in MARKED_3
    assert stage.precedes("m1", "m2") == ordered
    assert stage.waiting("o@k") == (["m1", "m2"] if ordered else ["m1"])


def test_a_read_that_called_somebody_leaves_its_trace(set_up: SetUp) -> None:
    """P1 §4 in a system of nested calls: op1 changes nothing at its own object, but sends m1, which does elsewhere.
    op2, which conflicts with op1 and comes after it, sends m2: m1 → m2."""
    stage = set_up("c i k l")
    stage.object("o", "i", "w/read", reads="read")
    stage.object("d", "k l", "a/a b/b", at_once=True)
    stage.hold("l->k")
    stage.client("T1", "c").oneway("o.read", "op1")
    stage.instance("op1", "o@i").oneway("d.a", "m1")
    stage.instance("op1", "o@i").commit()
    stage.client("T2", "c").oneway("o.w", "op2")
    stage.instance("op2", "o@i").oneway("d.b@k", "m2")
    assert stage.precedes("m1", "m2")
    assert stage.waiting("d@k") == ["m1", "m2"]


@pytest.mark.parametrize("output", [b"", b"out"], ids=["N-response", "O-response"])
def test_r1_responses(set_up: SetUp, output: bytes) -> None:
    """P1 §4.2.2, R1: an instance sends m2 after the O-response m1. P1 drops the N-response here; protocol.md §2.2 keeps
    what an instance has received for what this instance itself sends, with output or without."""
    stage = set_up("c i j k")
    stage.object("o", "i")
    stage.object("b", "j")
    stage.object("d", "k", at_once=True)
    stage.hold("j->k")
    stage.client("T", "c").oneway("o.p", "op")
    op = stage.instance("op", "o@i")
    op.sync("b.p", SREC, "call")
    stage.instance("call", "b@j").oneway("d.n", "m0")
    stage.instance("call", "b@j").commit(output)
    op.oneway("d.n", "m2")
    assert stage.waiting("d@k") == ["m2"]
    stage.release()
    assert stage.delivered("d@k") == ["m0", "m2"]


@pytest.mark.parametrize("method", ["w", "p"], ids=["conflict", "compatible"])
def test_figures_8_and_9_receive_receive(set_up: SetUp, method: str) -> None:
    """P1 §4.2.3, C1, Figs. 8 and 9: j sends m2 after receiving m1, and k receives both, in different instances. P1
    orders them at k if they conflict there. Here m1 ≺ m2 is enough (P3 §3.1: OB-precedes): in both cases k, which
    cannot perform m1 yet, does not perform m2 either."""
    stage = set_up("c e j k")
    stage.object("o", "j k", "w/w v/m1")
    stage.client("T0", "e").oneway("o.v@k", "busy")
    stage.client("T", "c").oneway("o.m1", "m1")
    stage.instance("m1", "o@j").oneway(f"o.{method}@k", "m2")
    assert stage.waiting("o@k") == ["m1", "m2"]
    stage.instance("busy", "o@k").commit()
    assert stage.delivered("o@k") == ["busy", "m1", "m2"]


@pytest.mark.parametrize("late", ["h", "k"])
def test_figure_10_common_destinations(set_up: SetUp, late: str) -> None:
    """P1 §4.3, Fig. 10: h sends m1 and k sends m2 to the objects i and j, where both conflict; i gets m1 first and j
    gets m2 first. op1 comes before op2 at i iff it does at j."""
    stage = set_up("h k i j")
    stage.object("oi", "i", "a/a")
    stage.object("oj", "j", "b/b")
    stage.hold("h->j", "k->i")
    stage.client("T1", "h").oneway("oi.a oj.b", "m1i m1j")
    stage.client("T2", "k").oneway("oi.a oj.b", "m2i m2j")
    stage.release("h->j" if late == "k" else "k->i")
    stage.settle()
    assert [m[:2] for m in stage.delivered("oi@i")] == [m[:2] for m in stage.delivered("oj@j")]
    assert sorted(stage.delivered("oi@i")) == ["m1i", "m2i"]


# P1 §2.4 and §2.5


def test_ways_to_compute_in_many_objects(set_up: SetUp) -> None:
    """P1 §2.4: atomic computation is complete with all instances (crec), alternative with one (drec), (r/n) with r of
    them (quorum). §2.5, Fig. 2(1): the sender alone receives the responses and decides."""
    stage = set_up("p w1 w2 w3")
    stage.object("a", "w1 w2 w3", at_once=True)
    client = stage.client("T", "p")
    stage.hold("*->p")
    for n, receipt in enumerate((CREC, DREC, quorum(2)), 1):
        client.send("a.p", f"m{n}", "async", receipt)
    complete = []
    for node in ("w2", "w3", "w1"):
        stage.release(f"{node}->p")
        complete.append(sorted(r.call for r in client.received))
    assert complete == [[2], [2, 3], [1, 2, 3]]
    assert [client.answers(n) for n in (1, 2, 3)] == [["a@w2", "a@w3", "a@w1"], ["a@w2"], ["a@w2", "a@w3"]]
