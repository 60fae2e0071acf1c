"""The version of the package, from what is installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("obo")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"
