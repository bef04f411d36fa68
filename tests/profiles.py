"""How many random examples a test tries, and from which seed: `ci` is the same on every run, `explore` never is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# The first call of a kernel compiles it, and tables take long to draw: neither is a fault of the test.
COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def register() -> None:
    """Make the two profiles known: `make test` takes `ci`, `make test-all` takes `explore` by an option of pytest."""
    # Hypothesis also draws constants that it finds in the modules imported so far. Which these are depends on how the
    # tests were spread over processes, so that a seed alone would repeat nothing.
    none = providers.Constants()
    providers._get_local_constants = lambda: none
    settings.register_profile("ci", derandomize=True, database=None, max_examples=30, **COMMON)
    # Where CI is set in the environment, Hypothesis takes the same seeds unless told not to.
    settings.register_profile("explore", derandomize=False, print_blob=True, max_examples=100, **COMMON)


def examples(number: int) -> settings:
    """Ask for so many examples by `explore`, whose own number is 100; `ci` tries 30 of each 100.

    A test marked `slow` is one that tries many already; it names its number by `settings(max_examples=...)`.
    """
    return settings(max_examples=-(-number * settings.default.max_examples // 100))
