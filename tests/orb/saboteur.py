"""An object that breaks the framework below itself, as a fault in it would."""

from typing import Any

from framework import Object, method
from framework.com.host import Host


class Saboteur(Object):
    @method
    def spoil(self) -> None:
        """From now on the com layer of this process raises when an instance has been performed: first this one."""

        def broken(*_: Any) -> None:
            raise KeyError("spoiled")

        Host.complete = broken  # type: ignore[method-assign]
