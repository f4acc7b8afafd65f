"""How a fit ended, under the name by which estimators know it."""

from armid.information.status import EstimationError, Status

__all__ = ["EstimationError", "Status"]
