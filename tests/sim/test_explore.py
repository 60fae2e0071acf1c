"""``framework.sim.explore``: every order of small scenarios, and that it finds what is wrong.

Nothing here depends on how fast the machine is: searches end when nothing is left, or after so many schedules.
"""

from collections import defaultdict

import pytest

from framework.com import deadlock
from framework.com.caller import Call
from framework.com.order import Order
from framework.errors import BadRequest
from framework.sim.explore import schedule
from framework.sim.explore.family import family
from framework.sim.explore.machine import Machine
from framework.sim.explore.scenario import Scenario, load, names, read
from framework.sim.explore.search import Report, explore, strategy
from framework.sim.explore.stepper import Stepper
from framework.trace.record import line

HANGS = 600.0  # seconds: no search here takes long


def explored(name: str, how: str = "dfs", limit: int | None = None, seed: int = 0) -> tuple[Machine, Report]:
    machine = Machine(load(name))
    return machine, explore(machine, strategy(how), HANGS, limit=limit, seed=seed)


def told(report: Report) -> list[str]:
    return [str(v) for finding in report.findings for v in finding.violations]


# scopes that are exhausted, bounds on crashes, chance on past faults


@pytest.mark.parametrize(
    "name",
    [
        *("two-of-two", "call-back", "batching", "moves", "paxos", "nested", "transaction"),
        pytest.param("two", marks=pytest.mark.full),
        pytest.param("cross", marks=pytest.mark.full),
    ],
)
def test_every_schedule_of_a_small_scope_is_right(name: str) -> None:
    _, report = explored(name)
    assert told(report) == []
    assert report.exhausted


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("crash", "delay:1"),
        ("crash-origin", "delay:1"),
        ("crash-transaction", "delay:1"),
        ("rejoin", "delay:1"),
        ("joining", "delay:2"),
        ("joining-late", "delay:1"),
        ("too-late", "delay:1"),
        ("departed", "delay:1"),
        ("home-lost", "delay:1"),
        ("paxos-crash", "delay:2"),
        ("loss", "delay:2"),
        ("behind", "delay:1"),
        pytest.param("crash", "delay:2", marks=pytest.mark.full),
        pytest.param("crash-origin", "delay:2", marks=pytest.mark.full),
        pytest.param("crash-transaction", "delay:2", marks=pytest.mark.full),
        pytest.param("rejoin", "delay:2", marks=pytest.mark.full),
        pytest.param("paxos-crash", "dfs", marks=pytest.mark.full),
    ],
)
def test_all_schedules_with_few_deviations_are_right(name: str, how: str) -> None:
    _, report = explored(name, how)
    assert told(report) == []
    assert report.exhausted


@pytest.mark.parametrize("name", ["lost", "dead", "dead-late", "copy", "late", "veto", "early", "cancel"])
def test_chance_finds_nothing_where_faults_were(name: str) -> None:
    _, report = explored(name, "pct:4", limit=60)
    assert told(report) == []
    assert report.schedules == 60


@pytest.mark.full
@pytest.mark.parametrize("name", names())
def test_chance_finds_nothing_anywhere(name: str) -> None:
    _, report = explored(name, "pct:3", limit=400)
    assert told(report) == []


def _asleep(self, request, *rest, real=Order.arrive):
    entry = self.entries.get(request.group)
    tran = self.tran_of(request) if request.chain else None
    if entry is not None and tran is not None and self.aborted(tran):
        entry.watchers = None
    return real(self, request, *rest)


def _one_answer_is_enough(call, stateless=()):
    return bool(call.silent)


FAULTS = {
    "lost": (Order, "arrive", _asleep, "pct:3", 0),
    "behind": (Call, "is_open", _one_answer_is_enough, "delay:1", 0),
    "copy": (deadlock, "_unsettled", lambda host, entry: entry, "pct:4", 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_past_faults_are_found_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, was, how, seed = FAULTS[name]
    monkeypatch.setattr(owner, attribute, was)
    _, report = explored(name, how, 100, seed)
    assert any(said.startswith(("A8", "A10")) for said in told(report))


# what it does is what nodes do


def every_end(scenario: Scenario) -> list[bytes]:
    """The traces of all schedules, one after the other, by nodes of their own each time."""
    out, todo = [], [()]
    while todo:
        steps = todo.pop()
        nodes = [Stepper(scenario, name) for name in scenario.nodes]
        links = defaultdict(list)
        for node, event in steps:
            real = (*event[:2], links[event[1], node].pop(0)) if event[0] == "takes" else event
            for to, item in nodes[node].apply(real):
                links[scenario.nodes[node], scenario.nodes.index(to)].append(item)
        following = [(node, ("takes", source)) for (source, node), items in links.items() if items]
        following += [(i, event) for i, node in enumerate(nodes) for event in node.enabled()]
        todo += [(*steps, one) for one in following]
        if not following:
            for node in nodes:
                node.stop()
            out.append(b"".join(line(item) for node in nodes for item in node.told))
    return out


def test_it_counts_all_schedules_and_judges_all_their_ends() -> None:
    _, report = explored("two-of-two")
    ends = every_end(load("two-of-two"))
    assert len(ends) == report.schedules
    assert len(set(ends)) == report.distinct


def test_a_schedule_is_run_again_from_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Order, "arrive", _asleep)
    machine, report = explored("lost", "pct:3", 100)
    first = schedule.replay(machine, report.findings[0].schedule)
    assert [str(v) for v in first.verdict.violations] == told(report)
    scenario, steps = schedule.read_replay("lost", schedule.write(machine.scenario, first.lines))
    assert scenario == machine.scenario
    other = Machine(scenario)
    again = schedule.replay(other, schedule.chosen(other, steps))
    assert again == first
    monkeypatch.undo()
    other = Machine(scenario)
    assert schedule.replay(other, schedule.chosen(other, steps)).verdict.violations == []


def test_a_fault_of_the_com_layer_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def know(self, group, replica):
        raise KeyError(group)

    monkeypatch.setattr(Order, "know", know)
    machine, report = explored("two-of-two")
    assert told(report)[0].startswith("crash: KeyError")
    assert schedule.replay(machine, report.findings[0].schedule).verdict.violations == report.findings[0].violations


def test_a_search_is_the_same_each_time() -> None:
    one, two = (explored("crash", "pct:3", 40)[1] for _ in range(2))
    assert (one.steps, one.distinct, one.done) == (two.steps, two.distinct, two.done)


# scenarios as text


@pytest.mark.parametrize("name", names())
def test_a_scenario_is_written_as_it_is_read(name: str) -> None:
    scenario = load(name)
    assert read(name, scenario.text()) == scenario
    assert scenario.about


def test_programs_made_by_chance_are_scenarios() -> None:
    for seed in range(200):
        scenario = family(seed)
        assert read(scenario.name, scenario.text()) == scenario
        assert family(seed) == scenario


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names its nodes and objects"),
        ("nodes n1\nobject f on n2", "x:2: no node 'n2'; there are n1"),
        ("nodes n1\nobject f on n1\nclient a@n1\n  sync f.w", "x:4: write sync RECEIPT"),
        ("nodes n1\nobject f on n1\nclient a@n1\n  sync all f.w", "'all' is no receipt"),
        ("nodes n1\nobject f on n1\nclient a@n1\n  oneway g.w", "no object 'g'; there are f"),
        ("nodes n1\nobject f on n1\nclient a@n1\n  begin", "in a scenario with transactions"),
        ("nodes n1\nobject f on n1\n  oneway f.w", "belongs to no client"),
        ("nodes n1\nobject f on n1\nchoose luck", "choose luck: write tick"),
        ("nodes n1\nobject f on n1\nwhatever", "'whatever' begins no line"),
        ("nodes n1\nobject f on n1 conflicts w", "pairs of methods"),
    ],
)
def test_a_mistake_in_a_scenario_names_the_line(text: str, says: str) -> None:
    with pytest.raises(BadRequest) as error:
        read("x", text)
    assert says in str(error.value)


def test_a_step_that_cannot_happen_is_told_with_those_that_can() -> None:
    machine = Machine(load("two-of-two"))
    with pytest.raises(BadRequest, match=r"step 1, 'n2 takes n1', cannot happen then; .*'n1 client a', 'n2 client b'"):
        schedule.chosen(machine, ["n2 takes n1"])
    with pytest.raises(BadRequest, match="no line ----"):
        schedule.read_replay("x", "nodes n1")
