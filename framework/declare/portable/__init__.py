"""The state of an object as bytes, in chunks, and back. Plain data alone: no pickle, and no class is ever imported
because its name came in bytes.

A state is a row of *tokens*. A value that msgpack has (None, bool, float, text, bytes, int of 64 bits) is a token by
itself. Anything else begins with a token that is a list: its tag, then what the tag needs. A container says how many
values follow it, and these follow, each with all that is in it. So neither side holds more than a part of the tokens,
and no depth of nesting is too deep. A chunk is a list of tokens in msgpack.

``tags`` are the kinds of tokens, ``classes`` those of a user that may occur, ``leaves`` values without others in them.
``still`` keeps a state as it is at one moment, to be encoded later.
"""

from framework.declare.portable.classes import NotPortable
from framework.declare.portable.decode import decoded
from framework.declare.portable.encode import encoded

__all__ = ["NotPortable", "decoded", "encoded"]
