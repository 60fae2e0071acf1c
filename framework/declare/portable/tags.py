"""What a token that is a list begins with. Part of the format: never give a number a new meaning."""

from typing import Final

VERSION: Final = 1
#: Length of a chunk in bytes, roughly.
CHUNK: Final = 256 << 10

# containers: the second element says how many values follow
LIST, TUPLE, SET, FROZENSET, DICT, ORDERED, COUNTER, DEFAULT, DEQUE, PIECES = range(1, 11)
# instances of a user's classes: the second element is the class
INSTANCE, STRUCT, NAMED = range(20, 23)
# leaves
BIG, DATETIME, DATE, TIME, DELTA, DECIMAL, UUID_, MEMBER, FLAG = range(30, 39)
COMPLEX, FRACTION, RANGE, TIMEZONE, PATTERN, POSIX_PATH, WINDOWS_PATH, ARRAY = range(40, 48)
