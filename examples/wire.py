"""A wire between two nodes that can be cut: a small TCP forwarder, for demos on one machine."""

import socket
import threading
from contextlib import suppress

_PIECE = 65536


class Wire:
    """Forwards to ``port`` on this machine. Nodes dial ``address``. While it is cut, nothing comes through."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        self._whole = True
        self._open: set[socket.socket] = set()
        self._mutex = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._mutex:
            self._whole = False
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._mutex:
            self._whole = True

    def close(self) -> None:
        self.cut()
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:  # closed
                return
            try:
                far = socket.create_connection(self._target, 5.0)
            except OSError:  # the node is not there
                near.close()
                continue
            far.settimeout(None)
            with self._mutex:
                if not self._whole:
                    near.close()
                    far.close()
                    continue
                self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                sink.sendall(piece)
        for end in (source, sink):  # one way has ended, so the other does: gRPC opens a new connection
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._mutex:
            self._open.discard(source)
        source.close()
