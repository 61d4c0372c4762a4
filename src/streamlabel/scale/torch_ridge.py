"""Ridge on a device of PyTorch: what `classifier.ridge` does, with the same methods; spectra and plain products."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, wraps
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from streamlabel.classifier.ridge import Comparison, FeatureRidge, HatSpectrum, PreparedRidge, make_ridge
from streamlabel.classifier.single_precision import TOLERANCE
from streamlabel.scale.torch_device import NotHere, Rows, TorchDevice, get
from streamlabel.stats.accelerator import accelerating
from streamlabel.types import CSR, FloatArray, IntArray

_CORNER = 512
_EVEN = 8  # columns are made a multiple of it: of an odd number of float64 a product is a fifth slower
_CORRECTIONS = 10
_MOST_JUDGED = 4096


def product(device: TorchDevice, A: FloatArray, B: FloatArray) -> FloatArray | None:
    """``A B`` of dense matrices."""
    if float(A.shape[0]) * A.shape[1] * B.shape[1] < device.least_work:
        return None
    device.need(8.0 * (A.size + B.size + A.shape[0] * B.shape[1]), "a product")
    return get(device.put(A) @ device.put(B))


def eigh(device: TorchDevice, matrix: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Eigenvalues, increasing, and eigenvectors of a symmetric matrix."""
    order = len(matrix)
    if float(order) ** 3 < device.least_work:
        return None
    device.need(8.0 * 5 * order**2, f"the eigenvectors of order {order:,}")
    values, vectors = torch.linalg.eigh(device.put(matrix))
    return get(values), get(vectors)


def ridge(
    device: TorchDevice, X: CSR | FloatArray, beta: float, centre: bool, hat: HatSpectrum | None
) -> TorchRidge | None:
    """Ridge on these rows, factored."""
    small = float(min(X.shape)) * X.shape[0] * X.shape[1] < device.least_work
    return None if small else TorchRidge(device, X, beta, centre, hat)


class _Centred:
    """Rows on the device, with their mean taken away; by features or by rows, whichever are fewer."""

    def __init__(self, device: TorchDevice, X: CSR | FloatArray, centre: bool) -> None:
        self.device, self.X, self.centre = device, X, centre
        self.n_rows, self.n_features = int(X.shape[0]), int(X.shape[1])
        self.by_rows = X.shape[0] < X.shape[1]
        self.order = min(X.shape)
        self.mean: FloatArray = np.asarray(X.mean(axis=0)).ravel() if centre else np.zeros(self.n_features)
        self.shift = device.put(self.mean)

    @property
    def rows(self) -> Rows:
        return self.device.kept(self, "rows", lambda: self.device.rows(self.X))

    def gram(self, dtype: Any) -> Any:
        """The lower half of ``Xc'Xc`` (d, d) or ``Xc Xc'`` (n, n), whichever is smaller."""
        return self.rows.kernel(self.shift, dtype) if self.by_rows else self.rows.gram(self.shift, dtype)

    def products(self, targets: Any) -> Any:
        """``Xc'T`` (d, k)."""
        found = self.rows.transposed_times(targets)
        return found.addr_(self.shift, targets.sum(0), alpha=-1.0) if self.centre else found

    def scores(self, weights: Any) -> Any:
        """``Xc W`` (n, k)."""
        found = self.rows.times(weights)
        return found.sub_(self.shift @ weights) if self.centre else found

    def columns(self, *parts: Any) -> Iterator[tuple[slice, list[Any]]]:
        """Blocks of the columns of some matrices, on the device."""
        n_columns = int(parts[0].shape[1])
        # a block of targets, its products, its solution, and what a solve needs beside them
        width = self.device.width(8.0 * (3 * self.n_rows + 4 * self.n_features + 3 * self.order), n_columns)
        by_columns = [part if isinstance(part, np.ndarray) else part.tocsc() for part in parts]
        for start in range(0, n_columns, max(width, 1)):
            block = slice(start, min(start + width, n_columns))
            yield block, [self.device.put(part[:, block]) for part in by_columns]


def _or_cpu(method: Any) -> Any:
    """A method that, where the device gives up, is that of the same ridge made on the CPU."""

    @wraps(method)
    def run(self: Any, *arguments: Any) -> Any:
        if self.spare is None:
            try:
                return method(self, *arguments)
            except (NotHere, torch.cuda.OutOfMemoryError) as error:
                self._at.device.give_up(method.__name__, error)
            with accelerating(None):
                self.spare = self.on_cpu()
        found = getattr(self.spare, method.__name__)
        return found(*arguments) if callable(found) else found

    return run


class Triangle:
    """The Cholesky factor of a matrix of which the lower half is given (and overwritten in part).

    The inverses of the corners on its diagonal are kept, so that a solve is products of large matrices throughout.
    """

    def __init__(self, matrix: Any) -> None:
        self.lower, failed = torch.linalg.cholesky_ex(matrix)
        if int(failed):
            raise NotHere("beta is too small beside these rows for its digits")
        self._starts = [*range(0, len(matrix), _CORNER), len(matrix)]
        self._corners = []
        for start, stop in pairwise(self._starts):
            one = torch.eye(stop - start, dtype=matrix.dtype, device=matrix.device)
            corner = torch.linalg.solve_triangular(self.lower[start:stop, start:stop], one, upper=False)
            self._corners.append(corner)

    def half(self, right: Any) -> Any:
        """``L^-1 R``."""
        found = torch.nn.functional.pad(right, (0, -right.shape[1] % _EVEN))
        self._forward(found, 0, len(self._corners))
        return found[:, : right.shape[1]]

    def solve(self, right: Any) -> Any:
        """``(L L')^-1 R``."""
        found = torch.nn.functional.pad(right, (0, -right.shape[1] % _EVEN))
        self._forward(found, 0, len(self._corners))
        self._backward(found, 0, len(self._corners))
        return found[:, : right.shape[1]]

    def _forward(self, found: Any, first: int, last: int) -> None:
        """Half of the corners, what they say to the others, the other half; in place."""
        above, here, below, left = self._cut(found, first, last)
        if last - first == 1:
            here.copy_(self._corners[first] @ here)
            return
        self._forward(found, first, above)
        below.addmm_(left, here, alpha=-1.0)
        self._forward(found, above, last)

    def _backward(self, found: Any, first: int, last: int) -> None:
        above, here, below, left = self._cut(found, first, last)
        if last - first == 1:
            here.copy_(self._corners[first].T @ here)
            return
        self._backward(found, above, last)
        here.addmm_(left.T, below, alpha=-1.0)
        self._backward(found, first, above)

    def _cut(self, found: Any, first: int, last: int) -> tuple[int, Any, Any, Any]:
        """The corner in the middle, the rows before and behind it, and the block of the factor between these."""
        above = (first + last + 1) // 2
        start, middle, stop = (self._starts[place] for place in (first, above, last))
        return above, found[start:middle], found[middle:stop], self.lower[middle:stop, start:middle]


class TorchRidge:
    """Ridge of one strength on rows, factored on a device (`classifier.ridge.PreparedRidge`)."""

    def __init__(
        self, device: TorchDevice, X: CSR | FloatArray, beta: float, centre: bool, hat: HatSpectrum | None = None
    ) -> None:
        self.spare: PreparedRidge | None = None
        self._X, self._at = X, (at := _Centred(device, X, centre))
        size = device.dtype.itemsize
        device.need(2.5 * size * at.order**2, f"a factor of {at.order:,} {'rows' if at.by_rows else 'features'}")
        self.n_rows, self.mean, self.beta, self.centre, self.known_hat = at.n_rows, at.mean, beta, centre, hat
        gram = at.gram(device.dtype)
        self._unit = float(gram.diagonal().mean()) or 1.0 if size == 4 else 1.0  # float32 has a small range
        gram.div_(self._unit).diagonal().add_(beta / self._unit)
        self._triangle = Triangle(gram)

    @_or_cpu
    def solve(self, targets: CSR | FloatArray) -> FloatArray:
        weights = np.empty((len(self.mean), targets.shape[1]))
        for block, (part,) in self._at.columns(targets):
            weights[:, block] = get(self._weights(part))
        return weights

    @_or_cpu
    def compare(self, targets: CSR | FloatArray, anchor: FloatArray) -> Comparison:
        at, beta = self._at, self.beta
        found = Comparison(np.empty_like(anchor), np.empty_like(anchor), *np.empty((2, anchor.shape[1])))
        for block, (goal, held) in at.columns(targets, anchor):
            right, alone = at.products(goal), self._weights(goal)
            toward = (
                held + self._weights(goal - at.rows.times(held)) if at.by_rows else alone + beta * self._solved(held)
            )
            energy = goal.square().sum(0) - (goal.sum(0).square() / at.n_rows if at.centre else 0.0)
            found.alone[:, block], found.toward[:, block] = get(alone), get(toward)
            found.residual_alone[block] = get(energy - (alone * (right + beta * alone)).sum(0))
            found.residual_toward[block] = get(energy - (toward * (right + beta * (toward - held))).sum(0))
        return found

    def toward(self, targets: CSR | FloatArray, anchor: FloatArray) -> FloatArray:
        return self.compare(targets, anchor).toward

    leave_one_out = FeatureRidge.leave_one_out

    @_or_cpu
    def leverages(self, rows: IntArray | None = None) -> FloatArray:
        at, chosen = self._at, np.arange(self.n_rows) if rows is None else rows
        at.device.need(16.0 * at.order * min(len(chosen), _MOST_JUDGED), "what rows have of a factor")
        found = np.empty(len(chosen))
        for start in range(0, len(chosen), _MOST_JUDGED):  # h_i = x_i'M x_i, or by rows H = I - beta M
            part = chosen[start : start + _MOST_JUDGED]
            if at.by_rows:
                sides = torch.zeros((at.order, len(part)), dtype=at.device.dtype, device=at.device.device)
                sides[torch.as_tensor(part, device=sides.device), torch.arange(len(part), device=sides.device)] = 1.0
            else:
                sides = (at.rows.pick(part) - at.shift).T.to(at.device.dtype)
            own = get(self._triangle.half(sides).square().sum(0)) / self._unit
            found[start : start + len(part)] = 1.0 - self.beta * own if at.by_rows else own
        return found + (1.0 / self.n_rows if self.centre else 0.0)

    @property
    @_or_cpu
    def hat(self) -> HatSpectrum:
        if self.known_hat is None:
            at = self._at
            at.device.need(2.0 * at.device.dtype.itemsize * at.order**2, f"an inverse of order {at.order:,}")
            inverse = torch.cholesky_inverse(self._triangle.lower).mul_(self.beta / self._unit)
            kept, squares = inverse.diagonal().sum(dtype=torch.float64), inverse.square().sum(dtype=torch.float64)
            self.known_hat = HatSpectrum(at.order - float(kept), max(float(kept - squares), 0.0))
        return self.known_hat

    @property
    def freedom(self) -> float:
        return self.n_rows - self.hat.trace - float(self.centre)

    def _weights(self, targets: Any) -> Any:
        """The classifiers (d, k) of targets (n, k)."""
        at = self._at
        if not at.by_rows:
            return self._solved(at.products(targets))
        return at.products(self._solved(targets - targets.mean(0) if at.centre else targets))

    def _solved(self, right: Any) -> Any:
        """``M R`` (order, k), in float32 corrected by its residual in float64 until that is small."""
        at = self._at
        if at.device.dtype == torch.float64:
            return self._triangle.solve(right)
        lengths = right.norm(dim=0).clamp_min(1e-300)
        found, residual = torch.zeros_like(right), right
        for _ in range(_CORRECTIONS):
            scale = residual.abs().amax(0).clamp_min(1e-300)
            found += self._triangle.solve((residual / scale).float()).double() * (scale / self._unit)
            image = at.scores(at.products(found)) if at.by_rows else at.products(at.scores(found))
            residual = right - image - self.beta * found
            if float((residual.norm(dim=0) / lengths).max()) <= TOLERANCE:
                return found
        raise NotHere(f"float32 did not reach a relative residual of {TOLERANCE:.0e}; raise beta, or use float64")

    def on_cpu(self) -> PreparedRidge:
        """The same ridge on the CPU."""
        return make_ridge(self._X, self.beta, centre=self.centre, hat=self.known_hat)

    def __reduce__(self) -> Any:
        """Copies, also those in other processes, are made where they are."""
        return partial(make_ridge, centre=self.centre, hat=self.known_hat), (self._X, self.beta)
