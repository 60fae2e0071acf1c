"""The options of ``obo load`` that are settings of the run (framework/load/plan.py); what is not given stays None."""

from typing import Annotated

from typer import Option

Rate = Annotated[float | None, Option(help="Open loop: calls in a second, sent when due, whatever was answered.")]
Arrivals = Annotated[str | None, Option(metavar="even|poisson", help="Open loop: how calls are spread. [even]")]
Clients = Annotated[int | None, Option(help="Sessions; without --rate each has one call under way (closed loop). [8]")]
Processes = Annotated[int | None, Option(help="Client processes. [1]")]
Duration = Annotated[float | None, Option(metavar="SECONDS", help="Of what counts. [10]")]
Warmup = Annotated[float | None, Option(metavar="SECONDS", help="Before that. [1]")]
Ramp = Annotated[float | None, Option(metavar="SECONDS", help="Before that: the load grows from nothing. [0]")]
Conflict = Annotated[
    str | None, Option(metavar="SHARE,...", help="Calls that conflict; several: one after the other. [0]")
]
Reads = Annotated[str | None, Option(metavar="SHARE", help="Of the others, those that only read. [0.1]")]
Keys = Annotated[int | None, Option(help="How many keys. [1000]")]
Skew = Annotated[float | None, Option(help="Of keys, s of Zipf's law; 0: all alike. [0]")]
Ucast = Annotated[str | None, Option(metavar="SHARE", help="Calls by ucast.")]
Mcast = Annotated[str | None, Option(metavar="SHARE", help="Calls by mcast.")]
Pcast = Annotated[str | None, Option(metavar="SHARE", help="Calls by pcast.")]
Oneway = Annotated[str | None, Option(metavar="SHARE", help="Of calls without a result, those sent one-way. [0]")]
Receipt = Annotated[
    str | None, Option(metavar="majority|all|first|N", help="How many replies complete a call. [majority]")
]
Payload = Annotated[int | None, Option(metavar="BYTES", help="Filling, for workloads with a place for it. [0]")]
Timeout = Annotated[float | None, Option(metavar="SECONDS", help="Deadline of each call. [10]")]
InFlight = Annotated[int | None, Option(help="Calls under way at most. [4096]")]
Step = Annotated[int | None, Option(help="fig9: percent between two conflict ratios. [10]")]
Seeds = Annotated[int | None, Option(help="fig9: runs for each point. [2]")]
Seed = Annotated[int | None, Option(help="The same seed draws the same calls. [1]")]
