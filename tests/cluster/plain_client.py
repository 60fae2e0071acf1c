"""A client that knows nothing but proto/orb.proto: run in a process of its own, beside the code made from it.

``python plain_client.py stubs|reflection ADDRESS``; the last line of what it prints is JSON.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

SERVICE = "obo.orb.v1.Gateway"


def by_stubs(channel):
    """Messages and methods as protoc makes them."""
    import orb_pb2
    import orb_pb2_grpc

    return orb_pb2_grpc.GatewayStub(channel), lambda name: getattr(orb_pb2, name)


def by_reflection(channel):
    """Messages and methods as the server describes them, as grpcurl does."""
    ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
    request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE)
    (answer,) = ask(iter([request]), timeout=60)
    pool = descriptor_pool.DescriptorPool()
    for data in answer.file_descriptor_response.file_descriptor_proto:
        pool.Add(descriptor_pb2.FileDescriptorProto.FromString(data))

    class Stub:
        pass

    for method in pool.FindServiceByName(SERVICE).methods:
        result = message_factory.GetMessageClass(method.output_type)
        call = channel.unary_unary(
            f"/{SERVICE}/{method.name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=result.FromString,
        )
        setattr(Stub, method.name, staticmethod(call))
    return Stub, lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"obo.orb.v1.{name}"))


def services(channel):
    ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
    (answer,) = ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=60)
    return sorted(s.name for s in answer.list_services_response.service)


def health(channel):
    answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=SERVICE), timeout=60)
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


def main(way, address):
    with grpc.insecure_channel(address) as channel:
        stub, message = (by_stubs if way == "stubs" else by_reflection)(channel)

        def invoke(name, method, args, **more):
            request = message("InvokeRequest")(object=name, method=method, args_json=json.dumps(args), **more)
            return stub.Invoke(request, timeout=60)

        def fault(*words):
            try:
                invoke(*words)
            except grpc.RpcError as error:
                trailing = dict(error.trailing_metadata())
                detail = message("ErrorDetail").FromString(trailing["obo-error-bin"])
                return [error.code().name, error.details(), detail.error, detail.remote_error]
            raise AssertionError(f"{words} did not fail")

        for _ in range(3):  # the same call, three times
            made = message("RequestId")(client=f"plain-{way}", number=1, made_at=1.0)
            invoke("bank", "deposit", [way, 5], id=made)
        told = {
            "balance": invoke("bank", "balance", {"account": way}).result_json,
            "refused": fault("bank", "withdraw", [way, 50]),
            "unknown": fault("bnk", "withdraw", [way, 50]),
            "objects": [o.name for o in stub.List(message("ListRequest")()).objects],
            "methods": [m.name for m in stub.Describe(message("DescribeRequest")(object="bank")).methods],
            "services": services(channel),
            "health": health(channel),
            "strangers": [m for m in sys.modules if m.split(".")[0] in ("framework", "objects")],
        }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
