"""The table of states (framework.com.states): a node is driven through each row; picture and page follow it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from framework.com.core import Com
from framework.com.events import Arrived, Evict, Isolated, Tick
from framework.com.link import Timing
from framework.com.messages import encode
from framework.com.outsider import Admitted, Outsider
from framework.com.states import MEANING, OUTSIDER, TABLE, State, Transition, state_of
from framework.com.view import Directory, View
from framework.com.words import Ballot, Decided, Decision, Excluded, Prepare
from framework.ids import Node
from framework.sim.state_picture import draw
from tests.com.council import FIVE, N1, N2, N3, N4, N5, Council, but

DOCS = Path(__file__).parents[2] / "docs"
TIMING = Timing(suspect_after=30.0)
WITH = View(2, (N1, N2, N3), (1,) * 3, (1,) * 3)
WITHOUT = View(2, (N2, N3, N4, N5), (1,) * 4, (1,) * 4)


class Subject:
    """The node n1, in whatever form it has, and the states it has been in."""

    def __init__(self) -> None:
        self.council = Council(FIVE, TIMING)
        self.outsider: Outsider | None = None
        self.states: list[State] = []

    @property
    def com(self) -> Com:
        return self.council.com[N1]

    def look(self) -> None:
        self.states.append(OUTSIDER if self.outsider is not None else self.com.member.state)

    def tell(self, source: Node, word: Decided | Excluded | Prepare) -> None:
        self.council.step(N1, Arrived(source, encode(word)))

    def hear(self, *nodes: Node) -> None:
        self.council.hear(N1, *nodes)
        self.council.tick(N1, later=1.0)

    def miss(self, *nodes: Node) -> None:
        """Time passes in which all but these are heard."""
        self.council.tick(N1)
        for _ in range(40):
            self.hear(*[n for n in FIVE[1:] if n not in nodes])

    def ask(self) -> None:
        directory = self.com.directory if self.com.out else Directory(View(1, (N1,)), ())
        self.outsider = Outsider(N1, 2, directory, TIMING, self.com.view)

    def admit(self, effects: list[object]) -> None:
        (admitted,) = [e for e in effects if isinstance(e, Admitted)]
        self.outsider = None
        directory = Directory(admitted.view, tuple(self.com.directory.objects.values()), FIVE)
        self.council.com[N1] = Com(N1, directory, TIMING)


# what comes before each row; and the row itself


def nothing(s: Subject) -> None: ...


def promised(s: Subject) -> None:
    s.council.tick(N1)
    s.tell(N2, Prepare(N2, 1, 1, Ballot(1, N2), (N5,)))


def isolated(s: Subject) -> None:
    s.miss(N3, N4, N5)


def promised_and_isolated(s: Subject) -> None:
    promised(s)
    s.miss(N3, N4, N5)


def attempting(s: Subject) -> None:
    s.council.step(N1, Evict(N5))
    s.council.tick(N1)


def out(s: Subject) -> None:
    s.tell(N2, Excluded(N2, WITHOUT))


def outside(s: Subject) -> None:
    s.ask()


def out_and_back(s: Subject) -> None:
    out(s)
    s.ask()


def form(s: Subject) -> None:
    assert s.outsider is not None
    s.admit(list(s.outsider.step(Tick(), 0.0)))


def be_admitted(s: Subject) -> None:
    assert s.outsider is not None
    view = View(3, (N1, N2, N3), (3, 1, 1), (2, 1, 1), ())
    s.admit(list(s.outsider.step(Arrived(N2, encode(Decided(N2, Decision(view, (), (N1,))))), 1.0)))


def fail_and_try_again(s: Subject) -> None:
    before = s.com.member.attempt
    assert before is not None
    s.council.step(N2, Arrived(N3, encode(Prepare(N3, 1, 1, Ballot(4, N3), (N5,)))))
    s.council.run(but())  # n2 refuses
    assert s.com.member.attempt is None
    s.council.tick(N1, later=1.0)
    for _ in range(20):
        s.hear(N2, N3, N4, N5)
    after = s.com.member.attempt
    assert after is not None and after.ballot > Ballot(4, N3)


def stop_missing(s: Subject) -> None:
    s.hear(*FIVE[1:])
    assert [e.yes for e in s.council.heard[N1] if isinstance(e, Isolated)] == [True, False]


def decide_with(s: Subject) -> None:
    s.tell(N2, Decided(N2, Decision(WITH, (N4, N5))))
    s.hear(N2, N3)
    assert s.com.view == 2


Step = Callable[[Subject], None]
DRIVE: dict[tuple[str, str], tuple[Step, Step]] = {
    ("outsider", "all nodes are outsiders and have heard each other"): (outside, form),
    ("outsider", "a view with it was decided"): (out_and_back, be_admitted),
    ("steady", "a member is suspected or shall go, or a node asks to join"): (nothing, attempting),
    ("steady", "Prepare"): (nothing, promised),
    ("steady", "too few are heard"): (nothing, isolated),
    ("steady", "it is told of a later view without it"): (nothing, out),
    ("changing", "the attempt comes to nothing"): (attempting, fail_and_try_again),
    ("changing", "a view with it was decided"): (promised, decide_with),
    ("changing", "too few are heard"): (promised, lambda s: s.miss(N3, N4, N5)),
    ("changing", "a view without it was decided"): (
        promised,
        lambda s: s.tell(N2, Decided(N2, Decision(WITHOUT, (N1,)))),
    ),
    ("isolated", "enough are heard again"): (isolated, stop_missing),
    ("isolated", "enough are heard again, and it has promised"): (promised_and_isolated, stop_missing),
    ("isolated", "a view with it was decided"): (promised_and_isolated, decide_with),
    ("isolated", "it is told of a later view without it"): (isolated, out),
    ("out", "its process begins anew"): (out, outside),
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.state}, {row.event}")
def test_each_row(row: Transition) -> None:
    before, event = DRIVE[row.state, row.event]
    subject = Subject()
    before(subject)
    subject.look()
    event(subject)
    subject.look()
    assert subject.states == [row.state, row.next]


def test_rows_are_told_apart() -> None:
    assert [(row.state, row.event) for row in TABLE] == list(DRIVE), "each is driven, none twice"
    assert {row.state for row in TABLE} == {row.next for row in TABLE} == set(MEANING), "no dead end, nothing apart"


def test_what_hurts_more_is_told() -> None:
    assert [state_of(*facts) for facts in ((True, True, True), (False, True, True), (False, False, True))] == [
        "out",
        "isolated",
        "changing",
    ]
    assert state_of(False, False, False) == "steady"


def test_the_picture_is_in_step_with_the_table() -> None:
    written = (DOCS / "membership.svg").read_text(encoding="utf-8")
    how = "python -c \"from framework.sim.state_picture import write; write('docs/membership.svg')\""
    assert written == draw(), f"the table has changed; draw it anew: {how}"


def test_the_page_has_the_table() -> None:
    page = (DOCS / "membership.md").read_text(encoding="utf-8")
    rows = [f"| {row.state} | {row.event} | {row.next} | {row.what} |" for row in TABLE]
    assert [line for line in page.splitlines() if line in rows] == rows
    for state, meaning in MEANING.items():
        assert f"| **{state}** | {meaning} |" in page
