"""The picture of a run: what it reads from records, and that terminal and SVG show it."""

from xml.etree import ElementTree

import pytest

from framework.errors import BadRequest
from framework.footprint import Footprint
from framework.sim import svg, terminal
from framework.sim.picture import Cut, Picture, cut_out, of_traces
from framework.sim.run import Options, build, run
from framework.trace.record import Header, Placed, Record

SVG = "{http://www.w3.org/2000/svg}"
HEADER = Header(
    node="n1",
    view=1,
    members=("n1", "n2"),
    objects={"bank": Placed(("bank@n1", "bank@n2"), (("take", "take"), ("look", "take")))},
)


class Story:
    """Records by hand, as nodes would write them."""

    def __init__(self, faults=()):
        self.picture = Picture([HEADER], faults)
        self.i = 0

    def __call__(self, at, event, **fields):
        self.i += 1
        node = fields.pop("node", fields.get("replica", "bank@n1").partition("@")[2])
        return self.picture.take(Record(i=self.i, node=node, at=at, event=event, view=1, **fields))

    def send(self, at, no, method, keys=None, node="n1"):
        group = f"1:tran@{node}:{no}"
        footprint = Footprint(method, keys, method == "look")
        self(
            at, "send", node=node, group=group, sid=f"1:tran@{node}", no=no, invocation=f"ann/{no}", client="ann",
            kind="sync", transmission="mcast", parts=(("bank", footprint),), dests=(("bank@n1", 1), ("bank@n2", 1)),
        )  # fmt: skip
        return group

    def visit(self, group, replica, no, times, method="take", keys=None):
        """arrive, propose, agree, deliver, end; None for what does not happen."""
        arrive, propose, agree, deliver, end = times
        common = {"group": group, "replica": replica, "invocation": f"ann/{no}"}
        sid = f"{no}{arrive:.0f}:{replica}"
        found = self(arrive, "arrive", **common)
        if propose is not None:
            self(propose, "propose", **common)
        if agree is not None:
            self(agree, "agree", **common, way="fast")
        if deliver is not None:
            self(deliver, "deliver", **common, sid=sid, footprint=Footprint(method, keys), way="fast")
        if end is not None:
            self(end, "end", replica=replica, sid=sid, invocation=f"ann/{no}")
        return found


@pytest.fixture
def story():
    """ann/1 takes; ann/2 takes the same and waits for it; ann/3 takes something else and does not."""
    story = Story([(2.0, 9.0, "n1 and n2 are cut from each other"), (3.0, 4.0, "n2 stands still")])
    key, other = (("a", "w"),), (("b", "w"),)
    groups = [story.send(float(n), n, "take", k) for n, k in ((1, key), (2, key), (3, other))]
    story.first = story.visit(groups[0], "bank@n1", 1, (1.0, 2.0, 4.0, 4.0, 10.0), keys=key)
    story.second = story.visit(groups[1], "bank@n1", 2, (2.0, 3.0, 5.0, 10.0, 12.0), keys=key)
    story.third = story.visit(groups[2], "bank@n1", 3, (3.0, 3.0, 4.5, 4.5, 6.0), keys=other)
    story(13.0, "receive", node="n1", group=groups[1], sid="1:tran@n1", client="ann", received=(("bank@n1", "ok"),))
    return story


def test_phases_are_the_three_ways_of_waiting_and_performing(story):
    assert list(story.second.phases(99.0)) == [
        ("held", 2.0, 3.0),
        ("agreement", 3.0, 5.0),
        ("turn", 5.0, 10.0),
        ("performing", 10.0, 12.0),
    ]
    assert [phase for phase, _, _ in story.third.phases(99.0)] == ["agreement", "performing"]


def test_what_is_not_over_lasts_until_now():
    story = Story()
    visit = story.visit(story.send(0.0, 1, "take"), "bank@n2", 1, (1.0, 2.0, None, None, None))
    assert list(visit.phases(7.0)) == [("held", 1.0, 2.0), ("agreement", 2.0, 7.0)]
    assert visit.last(7.0) == 7.0


def test_a_copy_ends_when_it_is_known_for_one():
    story = Story()
    group = story.send(0.0, 1, "take")
    visit = story.visit(group, "bank@n2", 1, (1.0, None, None, None, None))
    story(3.0, "duplicate", group=group, replica="bank@n2", invocation="ann/1")
    assert list(visit.phases(9.0)) == [("held", 1.0, 3.0)]


def test_who_went_first_is_who_conflicts(story):
    assert story.picture.went_first(story.second) == [story.first]
    assert story.picture.went_first(story.third) == []
    assert story.picture.went_first(story.first) == []
    assert story.picture.undecided(story.first) == [story.second]


def test_faults_name_their_nodes(story):
    assert [f.nodes for f in story.picture.faults] == [("n1", "n2"), ("n2",)]


def drawn(picture, width=100, signs=terminal.SIGNS):
    return [line.plain for line in terminal.draw(picture, "a title", width, signs)]


def row(lines, text):
    return next(line for line in lines if text in line)


def test_the_terminal_shows_waiting_and_performing_differently(story):
    lines = drawn(story.picture)
    assert "░" in row(lines, "bank@n1 keeps ann/1")
    assert "█" not in row(lines, "bank@n1 keeps ann/1")
    assert "held 1.0, agreement 2.0 (fast), conflict 5.0 with ann/1" in row(lines, "bank@n1 keeps ann/2")
    beginning = row(lines, "bank@n1 performs ann/3")
    assert beginning.count("█") == 2  # ann/1 and ann/3 side by side
    assert "▒" in beginning  # ann/2 still agrees
    assert "▓" in row(lines, "bank@n1 ends ann/3")  # and then waits for its turn
    assert "a title" in lines[0]
    assert "waits for a conflicting one" in "\n".join(lines[:4])


def test_the_terminal_marks_faults(story):
    lines = drawn(story.picture)
    assert "×" in row(lines, "!! n2 stands still")
    assert "┊" in row(lines, "!! n1 and n2 are cut")
    assert "×" not in row(lines, "bank@n1 ends ann/1")


def test_arrows_go_from_sender_to_destination():
    story = Story()
    left, right = story.send(1.0, 1, "take", node="n1"), story.send(1.5, 2, "take", node="n2")
    story.visit(left, "bank@n2", 1, (2.0, None, None, 2.0, 3.0))
    story.visit(right, "bank@n1", 2, (2.5, None, None, 2.5, 3.5))
    lines = drawn(story.picture)
    there, back = row(lines, "bank@n2 performs ann/1"), row(lines, "bank@n1 performs ann/2")
    assert "├" in there and there.index("├") < there.index("─") < there.index("▶")
    assert "┤" in back and back.index("◀") < back.index("┤")
    assert row(lines, "ann/1 sync").index("●") < row(lines, "ann/2 sync").index("●")


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("seed", [5, 18])
def test_the_picture_fits_the_width_and_loses_nothing(seed, width):
    done = run(seed)
    picture = of_traces(done.traces, done.world.story)
    lines = drawn(picture, width)
    assert max(map(len, lines)) <= max(width, 60 + 9)
    words = " ".join(" ".join(lines).split())
    assert sum(line.count("performs") for line in lines) == done.verdict.delivered
    assert all(f"{fault.text.split()[0]}" in words for fault in picture.faults)


def test_signs_of_a_plain_terminal_are_ascii(story):
    assert all(line.isascii() for line in drawn(story.picture, signs=terminal.PLAIN))


# parts of a picture


def test_cutting_out_an_invocation_takes_what_it_called():
    done = run(7)
    picture = of_traces(done.traces)
    roots = {v.invocation for v in picture.visits.values() if "." in v.invocation}
    root = min(roots).partition(".")[0]
    part = cut_out(picture, Cut(only=root))
    assert {v.invocation for v in part.visits.values()} == {
        v.invocation for v in picture.visits.values() if v.invocation == root or v.invocation.startswith(root + ".")
    }


@pytest.mark.parametrize(("only", "field"), [("o6", "object"), ("o6@n1", "replica")])
def test_cutting_out_an_object_or_replica(only, field):
    part = cut_out(of_traces(run(7).traces), Cut(only=only))
    assert {getattr(v, field) for v in part.visits.values()} == {only}


def test_cutting_out_a_time(story):
    lines = drawn(cut_out(story.picture, Cut(start=11.0)))
    assert not [line for line in lines if "ann/1" in line or "ann/3" in line]
    assert row(lines, "bank@n1 ends ann/2")


def test_nothing_to_draw_says_what_there_is(story):
    with pytest.raises(BadRequest, match=r"no request fits --only bob.*for example --only ann/1"):
        cut_out(story.picture, Cut(only="bob"))
    with pytest.raises(BadRequest, match=r"--from 50; the run has times 0 to 13.0"):
        cut_out(story.picture, Cut(start=50.0))


# the SVG


def parsed(picture, title="a <title> & more", notes=()):
    return ElementTree.fromstring(svg.draw(picture, title, notes))


def titles(root, kind):
    return [g.find(f"{SVG}title").text for g in root.iter(f"{SVG}g") if g.get("class") == kind]


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_every_request_is_in_the_svg_once(seed):
    done = run(seed)
    picture = of_traces(done.traces, done.world.story)
    root = parsed(picture)
    assert len(titles(root, "v")) == len(picture.visits)
    assert len(titles(root, "m")) == len(picture.sends)
    arrows = [p for g in root.iter(f"{SVG}g") if g.get("class") == "m" for p in g.iter(f"{SVG}path")]
    assert len(arrows) == len(picture.visits)
    for text in {f.text for f in picture.faults}:
        assert text in svg.draw(picture, "")


def test_bars_do_not_overlap_in_their_lane():
    done = run(18)
    layout = svg.Layout(of_traces(done.traces))
    lanes = {}
    for (replica, _), visit in layout.picture.visits.items():
        lanes.setdefault((replica, layout.bar(visit)), []).append(layout.span(visit))
    for spans in lanes.values():
        for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            assert end < start


def test_waiting_is_hatched_and_performing_is_coloured_by_method(story):
    root = parsed(story.picture)
    bars = {g.findtext(f"{SVG}title"): g for g in root.iter(f"{SVG}g") if g.get("class") == "v"}
    second = next(g for title, g in bars.items() if title.startswith("ann/2 take"))
    assert [r.get("fill") for r in second.iter(f"{SVG}rect")] == [
        "url(#held)",
        "url(#agreement)",
        "url(#turn)",
        svg._COLOURS[0],
    ]
    assert "waited: held 1.0, agreement 2.0 (fast), conflict 5.0 with ann/1" in second.findtext(f"{SVG}title")
    widths = [float(r.get("width")) for r in second.iter(f"{SVG}rect")]
    assert widths[1] > widths[0] and widths[2] > widths[1]


def test_the_svg_is_whole_in_itself_and_takes_any_name(story):
    text = svg.draw(story.picture, "seed 7 \x00 <&>\ud800", ["A3: \x07 wrong"])
    root = ElementTree.fromstring(text)
    assert "seed 7 ? <&>?" in [t.text for t in root.iter(f"{SVG}text")]
    assert "A3: ? wrong" in [t.text for t in root.iter(f"{SVG}text")]
    assert "<script" not in text
    assert text.count("http") == 1  # the name space, no picture or font from elsewhere
    text.encode()


def test_silence_is_shortened_and_order_is_kept():
    axis = svg.Layout(of_traces(run(7).traces)).axis
    places = [axis.x(at) for at in axis.times]
    assert places == sorted(places)
    assert axis.breaks
    assert axis.x(-5.0) == places[0]
    assert axis.x(1e9) == places[-1]


def test_an_empty_run_can_be_drawn():
    world = build(1, Options({"nodes": 1, "objects": 1, "clients": 1, "calls": 1}))
    picture = of_traces(world.traces())
    assert parsed(picture) is not None
    assert drawn(picture)
