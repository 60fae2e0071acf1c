from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FetchWish(_message.Message):
    __slots__ = ("node", "life", "replica", "ticket", "offset", "done", "held", "audit")
    NODE_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    node: str
    life: int
    replica: str
    ticket: str
    offset: int
    done: bool
    held: bool
    audit: bytes
    def __init__(self, node: _Optional[str] = ..., life: _Optional[int] = ..., replica: _Optional[str] = ..., ticket: _Optional[str] = ..., offset: _Optional[int] = ..., done: _Optional[bool] = ..., held: _Optional[bool] = ..., audit: _Optional[bytes] = ...) -> None: ...

class FetchChunk(_message.Message):
    __slots__ = ("header", "piece", "end")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    header: FetchHeader
    piece: FetchPiece
    end: FetchEnd
    def __init__(self, header: _Optional[_Union[FetchHeader, _Mapping]] = ..., piece: _Optional[_Union[FetchPiece, _Mapping]] = ..., end: _Optional[_Union[FetchEnd, _Mapping]] = ...) -> None: ...

class FetchHeader(_message.Message):
    __slots__ = ("ticket", "offset", "total", "part")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    ticket: str
    offset: int
    total: int
    part: bytes
    def __init__(self, ticket: _Optional[str] = ..., offset: _Optional[int] = ..., total: _Optional[int] = ..., part: _Optional[bytes] = ...) -> None: ...

class FetchPiece(_message.Message):
    __slots__ = ("data", "crc")
    DATA_FIELD_NUMBER: _ClassVar[int]
    CRC_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    crc: int
    def __init__(self, data: _Optional[bytes] = ..., crc: _Optional[int] = ...) -> None: ...

class FetchEnd(_message.Message):
    __slots__ = ("total", "digest")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    total: int
    digest: bytes
    def __init__(self, total: _Optional[int] = ..., digest: _Optional[bytes] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("data", "more")
    DATA_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    more: bool
    def __init__(self, data: _Optional[bytes] = ..., more: _Optional[bool] = ...) -> None: ...
