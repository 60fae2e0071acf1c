"""Options of gRPC, for links and sessions alike; for the reasons see docs/architecture.md, "Known traps"."""

from typing import Any

Options = list[tuple[str, Any]]

#: A frame is bounded by what fits into one message; a larger one is refused by gRPC with RESOURCE_EXHAUSTED.
MAX_MESSAGE = 64 << 20
#: What it may be set to.
LEAST_EVER, MOST_EVER = 1 << 20, 256 << 20
#: For clients: what they may send is said by the node, what they get is bounded by it.
UNLIMITED = -1

_KEEPALIVE: Options = [
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]


#: For one attempt to connect, whatever gRPC calls it. A peer may be busy, or far away: with TLS that is four ways there
#: and back. Not longer, because behind a cut that was healed the next attempt is heard at once, and this one late.
CONNECT_MS = 2000


def _sizes(max_message: int) -> Options:
    return [("grpc.max_send_message_length", max_message), ("grpc.max_receive_message_length", max_message)]


def channel(max_message: int = MAX_MESSAGE) -> Options:
    return [
        *_sizes(max_message),
        *_KEEPALIVE,
        ("grpc.dns_min_time_between_resolutions_ms", 1000),  # else a peer with a new address is found after 30 s
        ("grpc.initial_reconnect_backoff_ms", 50),  # we have our own backoff, with jitter
        ("grpc.min_reconnect_backoff_ms", CONNECT_MS),
        ("grpc.max_reconnect_backoff_ms", 500),
        ("grpc.use_local_subchannel_pool", 1),  # one connection for each peer, even in one process
        ("grpc.enable_http_proxy", 0),  # nodes and clients meet directly
    ]


def server(max_message: int = MAX_MESSAGE) -> Options:
    return [
        *_sizes(max_message),
        *_KEEPALIVE,
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),  # else who pings an idle stream is sent away after 20 s
        ("grpc.server.max_pending_requests", 100_000),  # else random CANCELLED beyond about 1000
        ("grpc.server.max_pending_requests_hard_limit", 200_000),
        ("grpc.so_reuseport", 0),  # a port that is taken is an error, not a shared one
    ]
