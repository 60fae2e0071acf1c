"""What looking.py says, as messages of orb.proto."""

from collections.abc import Mapping
from typing import Any

from framework.net.wire.orb_pb2 import Conflict, DescribeResponse, MethodInfo, ObjectInfo, ParameterInfo


def object_info(told: Mapping[str, Any]) -> ObjectInfo:
    return ObjectInfo(name=told["name"], class_name=told["class"], replicas=told["replicas"], methods=told["methods"])


def describe_response(told: Mapping[str, Any]) -> DescribeResponse:
    return DescribeResponse(
        object=object_info(told),
        doc=told["doc"],
        methods=[_method(m) for m in told["signatures"]],
        conflicts=[
            Conflict(first=c["first"], second=c["second"], where_keys_meet=c["when"] == "keys meet")
            for c in told["conflicts"]
        ],
    )


def _method(told: Mapping[str, Any]) -> MethodInfo:
    return MethodInfo(
        name=told["name"],
        doc=told["doc"],
        parameters=[_parameter(p) for p in told["parameters"]],
        returns=told["returns"],
        returns_schema=told["returns_schema"],
        readonly=told["readonly"],
        is_async=told["async"],
        key=told["key"],
    )


def _parameter(told: Mapping[str, Any]) -> ParameterInfo:
    return ParameterInfo(
        name=told["name"],
        type=told["type"],
        type_schema=told["schema"],
        required=told["required"],
        default_json=told.get("default", ""),
    )
