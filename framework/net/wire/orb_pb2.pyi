from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Packet(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, messages: _Optional[_Iterable[bytes]] = ...) -> None: ...

class InvokeRequest(_message.Message):
    __slots__ = ("object", "method", "args_json", "oneway", "receipt", "timeout_s", "id", "session")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ARGS_JSON_FIELD_NUMBER: _ClassVar[int]
    ONEWAY_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    object: str
    method: str
    args_json: str
    oneway: bool
    receipt: str
    timeout_s: float
    id: RequestId
    session: bytes
    def __init__(self, object: _Optional[str] = ..., method: _Optional[str] = ..., args_json: _Optional[str] = ..., oneway: _Optional[bool] = ..., receipt: _Optional[str] = ..., timeout_s: _Optional[float] = ..., id: _Optional[_Union[RequestId, _Mapping]] = ..., session: _Optional[bytes] = ...) -> None: ...

class RequestId(_message.Message):
    __slots__ = ("client", "number", "made_at")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MADE_AT_FIELD_NUMBER: _ClassVar[int]
    client: str
    number: int
    made_at: float
    def __init__(self, client: _Optional[str] = ..., number: _Optional[int] = ..., made_at: _Optional[float] = ...) -> None: ...

class InvokeResponse(_message.Message):
    __slots__ = ("result_json", "replies", "session", "node")
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    result_json: str
    replies: _containers.RepeatedCompositeFieldContainer[InvokeReply]
    session: bytes
    node: str
    def __init__(self, result_json: _Optional[str] = ..., replies: _Optional[_Iterable[_Union[InvokeReply, _Mapping]]] = ..., session: _Optional[bytes] = ..., node: _Optional[str] = ...) -> None: ...

class InvokeReply(_message.Message):
    __slots__ = ("replica", "result_json", "error")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    RESULT_JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    replica: str
    result_json: str
    error: ErrorDetail
    def __init__(self, replica: _Optional[str] = ..., result_json: _Optional[str] = ..., error: _Optional[_Union[ErrorDetail, _Mapping]] = ...) -> None: ...

class ErrorDetail(_message.Message):
    __slots__ = ("error", "text", "happened", "remote_error", "remote_text", "remote_traceback", "answered")
    class Happened(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[ErrorDetail.Happened]
        NO: _ClassVar[ErrorDetail.Happened]
        YES: _ClassVar[ErrorDetail.Happened]
    UNKNOWN: ErrorDetail.Happened
    NO: ErrorDetail.Happened
    YES: ErrorDetail.Happened
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    HAPPENED_FIELD_NUMBER: _ClassVar[int]
    REMOTE_ERROR_FIELD_NUMBER: _ClassVar[int]
    REMOTE_TEXT_FIELD_NUMBER: _ClassVar[int]
    REMOTE_TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    error: str
    text: str
    happened: ErrorDetail.Happened
    remote_error: str
    remote_text: str
    remote_traceback: str
    answered: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, error: _Optional[str] = ..., text: _Optional[str] = ..., happened: _Optional[_Union[ErrorDetail.Happened, str]] = ..., remote_error: _Optional[str] = ..., remote_text: _Optional[str] = ..., remote_traceback: _Optional[str] = ..., answered: _Optional[_Iterable[str]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("objects",)
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    objects: _containers.RepeatedCompositeFieldContainer[ObjectInfo]
    def __init__(self, objects: _Optional[_Iterable[_Union[ObjectInfo, _Mapping]]] = ...) -> None: ...

class ObjectInfo(_message.Message):
    __slots__ = ("name", "class_name", "replicas", "methods")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    name: str
    class_name: str
    replicas: _containers.RepeatedScalarFieldContainer[str]
    methods: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., class_name: _Optional[str] = ..., replicas: _Optional[_Iterable[str]] = ..., methods: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("object",)
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    object: str
    def __init__(self, object: _Optional[str] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("object", "doc", "methods", "conflicts")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    object: ObjectInfo
    doc: str
    methods: _containers.RepeatedCompositeFieldContainer[MethodInfo]
    conflicts: _containers.RepeatedCompositeFieldContainer[Conflict]
    def __init__(self, object: _Optional[_Union[ObjectInfo, _Mapping]] = ..., doc: _Optional[str] = ..., methods: _Optional[_Iterable[_Union[MethodInfo, _Mapping]]] = ..., conflicts: _Optional[_Iterable[_Union[Conflict, _Mapping]]] = ...) -> None: ...

class MethodInfo(_message.Message):
    __slots__ = ("name", "doc", "parameters", "returns", "returns_schema", "readonly", "is_async", "key")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOC_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    RETURNS_FIELD_NUMBER: _ClassVar[int]
    RETURNS_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    READONLY_FIELD_NUMBER: _ClassVar[int]
    IS_ASYNC_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    doc: str
    parameters: _containers.RepeatedCompositeFieldContainer[ParameterInfo]
    returns: str
    returns_schema: str
    readonly: bool
    is_async: bool
    key: str
    def __init__(self, name: _Optional[str] = ..., doc: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[ParameterInfo, _Mapping]]] = ..., returns: _Optional[str] = ..., returns_schema: _Optional[str] = ..., readonly: _Optional[bool] = ..., is_async: _Optional[bool] = ..., key: _Optional[str] = ...) -> None: ...

class ParameterInfo(_message.Message):
    __slots__ = ("name", "type", "type_schema", "required", "default_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TYPE_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    type_schema: str
    required: bool
    default_json: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., type_schema: _Optional[str] = ..., required: _Optional[bool] = ..., default_json: _Optional[str] = ...) -> None: ...

class Conflict(_message.Message):
    __slots__ = ("first", "second", "where_keys_meet")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    WHERE_KEYS_MEET_FIELD_NUMBER: _ClassVar[int]
    first: str
    second: str
    where_keys_meet: bool
    def __init__(self, first: _Optional[str] = ..., second: _Optional[str] = ..., where_keys_meet: _Optional[bool] = ...) -> None: ...
