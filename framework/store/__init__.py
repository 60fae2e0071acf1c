"""What a node keeps on its own disk: a snapshot and a journal per replica, and one small record of its own.

Imports nothing of the framework but ids and errors. See docs/store.md.
"""

from framework.store.journal import Journal, Loaded
from framework.store.problems import Damaged, StoreBusy, StoreError, StoreFailed, WrongStore
from framework.store.store import Store

__all__ = ["Damaged", "Journal", "Loaded", "Store", "StoreBusy", "StoreError", "StoreFailed", "WrongStore"]
