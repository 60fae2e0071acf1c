"""A node in the middle of something, and the frames that are on their way to it.

``n1`` has requests waiting, held, announced, running, and calls of its own that wait for responses; what ``n2`` has
sent to it since is still on the wire. Tests give it those frames, spoilt in one way or another.
"""

from framework.com.messages import Frame, decode
from framework.com.receipt import CREC, DREC
from framework.ids import Node
from tests.paper.stage import Stage

N1, N2, N3 = Node("n1"), Node("n2"), Node("n3")


class Scene:
    def __init__(self) -> None:
        stage = self.stage = Stage("n1 n2 n3")
        stage.object("f", "n1 n2 n3", "w/w w/r", reads="r")
        stage.object("g", "n1 n2", "a/a a/b")
        stage.object("h", "n3", "x/x")
        ann, bob, eve = stage.client("ann", "n1"), stage.client("bob", "n2"), stage.client("eve", "n3")
        ann.oneway("f.w", "first")
        bob.sync("g.a(k)", CREC, "second")
        stage.hold("n2->n1", "n3->n1")
        for n in range(6):  # so that its origin stamp is above those of n1: the slow path
            eve.oneway("h.x", f"clock{n}")
        eve.oneway("f.w", "third")
        ann.sync("f.w", CREC, "mine")
        ann.sync("g.b(z)", CREC, "quick")
        ann.later("g.a(k,l:r) f.r", "both mine")
        bob.oneway("f.w g.b(k)", "theirs both")
        bob.oneway("g.b(l:r)", "theirs")
        for name, at in (("first", "f@n2"), ("second", "g@n2"), ("first", "f@n3")):
            stage.instance(name, at).oneway("h.x", f"from-{at}")
            stage.instance(name, at).commit(b"out")
        for instance in list(stage.instances.values()):
            if not instance.over and instance.node != "n1":
                instance.commit(b"more")
        stage.tick(12.0, "n2")
        stage.client("joe", "n2").sync("f.r", DREC, "read")
        self.com = stage.com("n1")
        self.frames = list(stage._held[(N2, N1)])
        self.others = list(stage._held[(N3, N1)])

    def decoded(self) -> list[Frame]:
        return [decode(data, N2) for data in self.frames]
