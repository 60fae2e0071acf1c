"""Finding the class that a user names: ``objects.bank:Bank``, or one in a module of the current directory."""

import os
import sys
from importlib import import_module
from types import ModuleType

from framework.declare import Object
from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest, OboError


def load_class(target: str) -> type[Object]:
    """The Object class that ``module:Class`` names."""
    module_name, colon, class_name = target.partition(":")
    if not colon or not module_name or not class_name:
        raise BadRequest(f"{target!r} names no class: write module:Class, for example objects.bank:Bank")
    module = load_module(module_name)
    found = getattr(module, class_name, None)
    if found is None:
        raise BadRequest(
            f"module {module_name} has no class {class_name!r}; {did_you_mean(class_name, _classes(module))}"
        )
    if not isinstance(found, type) or not issubclass(found, Object):
        raise BadRequest(f"{target} is no Object: write class {class_name}(Object) with Object from framework")
    return found


def load_module(name: str) -> ModuleType:
    """One of the current directory, or an installed one."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except OboError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise BadRequest(
                f"there is no module {name!r}, neither in the current directory nor among the installed ones"
            ) from None
        raise BadRequest(f"module {name} cannot be imported: {error}") from error
    except Exception as error:
        raise BadRequest(f"module {name} cannot be imported: {type(error).__name__}: {error}") from error


def _classes(module: ModuleType) -> list[str]:
    def is_object(value: object) -> bool:
        return isinstance(value, type) and issubclass(value, Object) and value is not Object

    return [name for name, value in vars(module).items() if is_object(value)]
