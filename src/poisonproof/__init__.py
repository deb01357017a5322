"""Regressors and classifiers whose individual predictions come with a proof against poisoned training data."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poisonproof.certificate import Certificate as Certificate
    from poisonproof.certificate import Interval as Interval
    from poisonproof.ensemble import CertifiedRegressor as CertifiedRegressor
    from poisonproof.errors import PoisonproofError as PoisonproofError
    from poisonproof.threat import Threat as Threat

_HOME = {
    "Certificate": "certificate",
    "CertifiedRegressor": "ensemble",
    "Interval": "certificate",
    "PoisonproofError": "errors",
    "Threat": "threat",
}

__all__ = [
    "Certificate",
    "CertifiedRegressor",
    "Interval",
    "PoisonproofError",
    "Threat",
    "__version__",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  any public object
    """A public name, imported when it is first used, so that importing the package costs nothing."""
    if name == "__version__":
        return version("poisonproof")
    if name not in _HOME:
        raise AttributeError(f"module 'poisonproof' has no attribute {name!r}")
    return getattr(import_module(f"poisonproof.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
