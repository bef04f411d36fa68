"""stub"""


def demo() -> None:
    """Take a tour."""
