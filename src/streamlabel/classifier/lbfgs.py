"""Quasi-Newton for any loss: scipy's L-BFGS on all labels at once, with the batched gradient.

Needs only gradients and a few copies of the classifiers, and many more iterations than `minimise_newton`. The
intercept is moved to the mean of the rows, ``b' = b + mu'v``, where it is least entangled with the weights.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from streamlabel.classifier.conjugate_gradient import column_lengths
from streamlabel.classifier.newton import NewtonResult, Start, first_point
from streamlabel.classifier.objective import AnchoredObjective
from streamlabel.types import FloatArray

_MEMORY = 20


def minimise_lbfgs(
    objective: AnchoredObjective, start: Start | None = None, *, tolerance: float, max_iter: int
) -> NewtonResult:
    """Minimise J by L-BFGS until each gradient is below `tolerance` times its `gradient_scale` (`first_point`)."""
    shape = objective.penalty.anchor.shape
    mean = np.asarray(objective.X.mean(axis=0)).ravel() if objective.fit_intercept else np.zeros(shape[0])
    scale = objective.gradient_scale()
    violations = np.full(shape[1], np.inf)

    def unpack(point: FloatArray) -> tuple[FloatArray, FloatArray]:
        V = point[: -shape[1]].reshape(shape)
        return V, point[-shape[1] :] - mean @ V

    def cost(point: FloatArray) -> tuple[float, FloatArray]:
        value, slope, slope_b = objective.value_and_gradient(*unpack(point))
        violations[:] = np.hypot(column_lengths(slope), slope_b) / scale
        return value, np.concatenate([(slope - np.outer(mean, slope_b)).ravel(), slope_b])

    def stop(intermediate_result: optimize.OptimizeResult) -> None:
        if (violations <= tolerance).all():
            raise StopIteration

    V, b = first_point(objective, start)
    found = optimize.minimize(
        cost,
        np.concatenate([V.ravel(), b + mean @ V]),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": max_iter, "maxfun": 2 * max_iter + 20, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    cost(found.x)
    return NewtonResult(*unpack(found.x), violations.copy(), int(found.nit), int(found.nfev) * len(violations))
