"""The base of transformers: scikit-learn's own where it is installed, else the little that they need of it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ParameterBase:
    """Parameters by name, as scikit-learn's `BaseEstimator` has them."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments that the object was made with, by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Any:
        """Change arguments by name; return the object."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"there is no parameter `{name}`")
            setattr(self, name, value)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Fit, and return the features of the same events."""
        itself: Any = self
        return itself.fit(X, y).transform(X)


if TYPE_CHECKING:
    FeatureBase = ParameterBase
else:
    try:
        from sklearn.base import BaseEstimator, TransformerMixin

        class FeatureBase(TransformerMixin, BaseEstimator):
            """A transformer of scikit-learn."""

    except ImportError:
        FeatureBase = ParameterBase
