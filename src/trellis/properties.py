"""Properties that are computed when they are first asked for, and then kept, without a lock.

Python's own held a lock up to 3.11, one for all objects of a class: who asked two threads for the results of two
queries waited for one, then the other, and taking the locks took a twentieth of the time of a small call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A method that is called once for an object; what it returns becomes the attribute of its name."""

        def __init__(self, method) -> None:
            self.method, self.__doc__ = method, method.__doc__

        def __set_name__(self, owner, name) -> None:
            self.name = name

        def __get__(self, instance, owner=None):
            """Compute the attribute, which is found instead from then on."""
            if instance is None:
                return self
            found = instance.__dict__[self.name] = self.method(instance)
            return found
