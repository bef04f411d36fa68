"""One style for all pictures: colours that colour-blind people tell apart, on light pages and on dark ones."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from trellis.errors import UsageError

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")  # of Okabe and Ito
QUIET = "rgba(128,128,128,0.65)"
BAND = "rgba(128,128,128,0.12)"


def plotly() -> Any:
    """Return the module that draws.

    Raises
    ------
    UsageError
        If plotly is not installed.
    """
    if find_spec("plotly") is None:
        raise UsageError(
            "pictures are drawn by plotly, which is not installed",
            "Install it with `pip install 'trellis-cep[pictures]'`, or `pip install plotly`.",
        )
    return import_module("plotly.graph_objects")


def styled(figure: Any, title: str, x: str = "", y: str = "") -> Any:
    """Give a figure its title, the titles of its axes and the common style; return it."""
    lines = {"gridcolor": "rgba(128,128,128,0.25)", "zerolinecolor": "rgba(128,128,128,0.4)"}
    figure.update_layout(
        title={"text": title, "font": {"size": 15}}, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "sans-serif", "color": "#7f7f7f"}, colorway=list(COLOURS),
        margin={"l": 50, "r": 20, "t": 50, "b": 45}, height=420,
        legend={"orientation": "h", "y": -0.2},
    )  # fmt: skip
    figure.update_xaxes(title=x, **lines)
    figure.update_yaxes(title=y, **lines)
    return figure
