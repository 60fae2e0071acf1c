"""An object of your own, replicated on three nodes, in 20 lines: python -m examples.own [--at host:port,...]"""

from examples.nodes import running
from framework import Object, conflict_matrix, connect, method


@conflict_matrix(vote=("result",))  # votes commute; a result must know which of them it has seen
class Poll(Object):
    def __init__(self) -> None:
        self.votes: dict[str, int] = {}

    @method
    def vote(self, choice: str) -> None:
        self.votes[choice] = self.votes.get(choice, 0) + 1

    @method(readonly=True)
    def result(self) -> dict[str, int]:
        return dict(sorted(self.votes.items()))


if __name__ == "__main__":
    with running(poll="examples.own:Poll") as addresses, connect(addresses) as orb:
        poll = orb.object(Poll, "poll")
        for choice in ("tea", "coffee", "tea"):
            poll.vote(choice)
        print(poll.result())
