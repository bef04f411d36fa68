"""The first event from each start on whose code is greater."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least_in
from trellis.kernels.jit import njit


@njit(cache=True, nogil=True)
def first_greater(own, starts, codes, places):
    """Return for each of some candidates the first of others that is not before its start and has a greater code.

    The others from a start on that are greater than all nearer ones stand on a stack, the nearest on top.

    Parameters
    ----------
    own, starts : int64 (candidates,)
        The codes that must be exceeded, and the places from which on; these never fall.
    codes, places : int64 (others,)
        The codes of the others, and their places, which rise.

    Returns
    -------
    int64 (candidates,): numbers of others; as many as there are for none.
    """
    found, falling = np.empty(own.shape[0], np.int64), ~codes  # those lower on the stack are greater
    stack, depth, k = np.empty(codes.shape[0] + 1, np.int64), 0, codes.shape[0]
    for i in range(own.shape[0] - 1, -1, -1):
        while k > 0 and places[k - 1] >= starts[i]:
            k -= 1
            while depth > 0 and codes[stack[depth - 1]] <= codes[k]:
                depth -= 1
            stack[depth] = k
            depth += 1
        low = first_at_least_in(stack, falling, 0, depth, ~own[i])
        found[i] = stack[low - 1] if low > 0 else codes.shape[0]
    return found
