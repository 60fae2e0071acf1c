"""The state of a replica on its way to another node.

``capture`` takes it at one moment, in milliseconds; ``Donor`` keeps it in a file until the other node has all of it;
``Fetcher`` brings it there, over streams that may break; ``Resident.adopt`` puts it in place.
"""

from framework.orb.moving.backoff import Backoff, Backoffs
from framework.orb.moving.captures import Capture, capture
from framework.orb.moving.donor import Donor
from framework.orb.moving.fetcher import Fetcher
from framework.orb.moving.job import Fetched

__all__ = ["Backoff", "Backoffs", "Capture", "Donor", "Fetched", "Fetcher", "capture"]
