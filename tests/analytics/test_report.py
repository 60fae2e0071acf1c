"""The report: whole in itself, and what a browser says about it."""

import re
import subprocess
from html.parser import HTMLParser

import pytest

from framework.analytics.analyze import Found
from framework.analytics.budget import PARTS
from framework.analytics.compare import Difference
from framework.analytics.pieces import Note
from framework.analytics.report import _filled, html
from framework.analytics.work import Analysed

EVIL = "<script>alert('x')</script>"


def found(name="run", violations=0):
    summary = {
        "calls": 120,
        "errors": 3,
        "rate": 40.0,
        "mean": 0.01,
        "p50": 0.009,
        "p90": 0.02,
        "p95": 0.03,
        "p99": 0.05,
        "p999": 0.06,
        "max": 0.07,
        "first": 0.0,
        "last": 3.0,
    }
    rows = {
        "lives": [
            {"life": "n1", "records": 1000, "missing": 0, "ended": "stopped"},
            {"life": "n2", "records": 500, "missing": 0, "ended": "crashed, or was cut off"},
        ],
        "calls": [{"object": "bank", "method": EVIL, **summary}],
        "calls_by": [{"what": "kind", "value": "sync", **summary}],
        "over_time": [{"t": n / 10, **summary, "rate": 30.0 + n} for n in range(60)],
        "over_time_by": [
            {"what": "node", "value": name, "t": float(t), **summary} for name in ("n1", "n2") for t in range(4)
        ],
        "distribution": [{"object": "bank", "method": "deposit", "bucket": b, "calls": 10} for b in range(-25, -10)],
        "budget": [
            {"object": "bank", "method": "deposit", "calls": 9, "slow": 1, "negative": 2, **dict.fromkeys(PARTS, 0.001)}
        ],
        "heat": [
            {
                "object": "bank",
                "method": "deposit",
                "waits_for": "balance",
                "key": "ann",
                "times": 3,
                "waited": 0.5,
                "longest": 0.2,
            }
        ],
        "heat_methods": [
            {"object": "bank", "method": "deposit", "waits_for": "balance", "times": 3, "waited": 0.5, "keys": 1}
        ],
        "ratio": [
            {
                "conflict_ratio": c / 10,
                "ucast": 0.5,
                "messages": 100,
                "needed": 5 * c,
                "conflicting": c,
                "not_ordered": 100 - 5.0 * c,
            }
            for c in range(11)
        ],
        "violations": [{"rule": "A3", "place": "bank@n1", "invocation": "ann/1", "text": "bank@n1 delivered …"}]
        * bool(violations),
        "clocks": [{"node": "n2", "of": "n1", "offset": 3.0, "error": 0.001, "steady": True}],
    }
    return Found(
        name,
        "runs/" + name,
        {"seed": 7, "workload": "bank"},
        [Note("something is missing", "n2", 1)],
        rows,
        {"calls": 1},
        {"A3": violations} if violations else {},
        True,
        False,
        changes=[(2.0, "n1", 2)],
    )


class Checker(HTMLParser):
    """Tags that are closed in order; nothing that the page would load from elsewhere."""

    VOID = frozenset({"meta", "link", "line", "rect", "circle", "polyline", "polygon", "br"})

    def __init__(self):
        super().__init__()
        self.open, self.loaded, self.seen = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("data:"):
                self.loaded.append(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
            self.open.pop()


def test_it_is_whole_in_itself_and_escapes_what_it_shows():
    text = html([found()])
    checker = Checker()
    checker.feed(text)
    assert not checker.open and not checker.loaded
    assert "script" not in checker.seen, "names of methods are shown, not run"
    assert checker.seen.count("svg") == 7
    assert not re.search(r"https?://", text)
    for word in (
        "crashed, or was cut off",
        "something is missing",
        "2 durations came out negative",
        "ahead by 3 s: corrected",
        "view 2",
    ):
        assert word in text, word


def test_the_verdict_is_on_top():
    good, bad = html([found()]), html([found(violations=2)])
    assert "No violation found in what is there; the data is not whole" in good
    assert bad.index("Violations found") < bad.index("<svg")
    assert "A3: 2 violations" in bad


def test_what_may_come_from_missing_records_is_no_verdict():
    sure, unsure = found(violations=2), found(violations=2)
    unsure.notes = [*unsure.notes, Note("n3 is a member, but its trace is not here", "n3", 1, hole=True)]
    page = html([unsure])
    assert "Violations found" not in page and "Not judged: records are missing" in page
    assert page.index("n3 is a member, but its trace is not here") < page.index("A3: 2 violations") < page.index("<svg")
    assert [Analysed([one], []).code for one in (found(), sure, unsure)] == [0, 1, 2]


def test_a_stretch_without_calls_is_drawn_as_none():
    assert _filled([(0.0, 5.0), (0.5, 6.0), (2.0, 7.0)], 0.5) == [
        (0.0, 5.0),
        (0.5, 6.0),
        (1.0, 0.0),
        (1.5, 0.0),
        (2.0, 7.0),
    ]


def test_two_runs_are_compared():
    worse = Difference("", "", "p99", 0.01, 0.02, 0.01, 0.005, 0.015, 20)
    text = html([found("one"), found("two")], [worse])
    assert "two against one: 1 figures worse, 0 better" in text
    assert "10 ms" in text and "worse" in text


#: What the page says about itself, to the page around it: a headless window is 500 wide at least, a frame is as wide as
#: it is told to be.
LOOK = """<script>addEventListener("load", () => {
  const letters = [...document.querySelectorAll("svg text")].map(text => {
    const svg = text.ownerSVGElement;
    return parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  });
  const outside = [...document.querySelectorAll("svg text")].filter(text => {
    const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1;
  });
  parent.postMessage([document.documentElement.scrollWidth, document.querySelectorAll("svg").length,
    Math.min(...letters).toFixed(1), outside.length].join(" "), "*");
})</script>"""
AROUND = """<!doctype html><title>nothing</title><body style="margin:0"><iframe src="report.html"
 style="width:{width}px;height:2400px;border:0"></iframe><script>
addEventListener("message", e => document.title = e.data)</script>"""


@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
def test_a_browser_shows_it_without_complaint(chromium, tmp_path, width):
    page, around, picture = tmp_path / "report.html", tmp_path / "around.html", tmp_path / "report.png"
    page.write_text(html([found()]).replace("</body>", LOOK + "</body>"), encoding="utf-8")
    around.write_text(AROUND.format(width=width), encoding="utf-8")
    words = [
        chromium,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
        "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={max(width, 500)},2400",
    ]
    told = subprocess.run(
        [*words, f"--screenshot={picture}", around.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in told.stderr, told.stderr
    assert picture.stat().st_size > 20_000
    dom = subprocess.run(
        [*words, "--dump-dom", around.as_uri()], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    wide, plots, least, outside = re.search(r"<title>(\d+) (\d+) ([\d.]+) (\d+)</title>", dom).groups()
    assert int(plots) == 7
    assert int(wide) <= width, "nothing sticks out of the page"
    assert float(least) >= 9.0, "letters that can be read"
    assert int(outside) == 0, "no text is cut off"
