"""Workloads as a user writes them."""

from framework.load import Call, Draw


def calls(draw: Draw) -> Call:
    account = draw.key()
    return Call("bank", "deposit", (account, 1), keys=(account,))


calls.objects = {"bank": "objects.bank:Bank"}


def wrong(draw: Draw) -> int:
    return 7


def breaks(draw: Draw) -> Call:
    if draw.number == 5:
        raise ZeroDivisionError("a mistake of the user")
    return Call("bank", "deposit", ("ann", 1))
