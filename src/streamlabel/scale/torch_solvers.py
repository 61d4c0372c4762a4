"""Iterations on a device of PyTorch: Newton for any loss, conjugate gradients, the lassos of many labels at once.

The equations, the stopping rules and the certificates are those of `classifier.newton`, `classifier.conjugate_gradient`
and `structure.represent`; all labels that fit into memory are worked on together, and leave when they are done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from streamlabel.classifier.losses import get_loss
from streamlabel.classifier.newton import NewtonResult, Start
from streamlabel.classifier.objective import Design, column_sums
from streamlabel.classifier.penalty import Penalty
from streamlabel.scale.torch_device import TorchDevice, get
from streamlabel.structure.lasso import FIRST_ENTRY
from streamlabel.structure.represent import ColumnTask
from streamlabel.types import CSR, FloatArray, IntArray

Operator = Callable[[Any], Any]

_DROPPED_SHARE = 1 / 8
_MAX_INNER, _MAX_HALVINGS, _SUFFICIENT = 200, 40, 1e-4
_SMALLEST_WEIGHT = 1e-8
_SINGLE_TOLERANCE = 1e-4  # on the relative gradient; below it float32 has no digits left


def conjugate_columns(
    operators: Callable[[Any], tuple[Operator, Operator]], right: Any, target: Any, max_iter: int
) -> tuple[Any, Any]:
    """Solve a system for each column from zero: solutions (d, k), and the steps of each (k,).

    operators : for some columns, their matrices and about the inverses of these
    target : (k,), the length of the residual at which a column is done
    """
    at_work = torch.arange(right.shape[1], device=right.device)
    apply, precondition = operators(at_work)
    found, steps = torch.zeros_like(right), torch.zeros_like(at_work)
    Z, residual = torch.zeros_like(right), right.clone()
    direction = precondition(residual)
    energy = (residual * direction).sum(0)
    for _ in range(max_iter):
        going = residual.norm(dim=0) > target
        n_going = int(going.sum())
        if not n_going:
            break
        if len(going) - n_going >= max(1.0, _DROPPED_SHARE * len(going)):
            found[:, at_work] = Z
            kept = going.nonzero()[:, 0]
            at_work, target, energy, going = at_work[kept], target[kept], energy[kept], going[kept]
            Z, residual, direction = (part.index_select(1, kept) for part in (Z, residual, direction))
            apply, precondition = operators(at_work)
        image = apply(direction)
        curvature = (direction * image).sum(0)
        going &= curvature > 0.0
        if not bool(going.any()):
            break
        steps[at_work] += going
        step = torch.where(going, energy / torch.where(going, curvature, 1.0), 0.0)
        Z.addcmul_(direction, step)
        residual.addcmul_(image, step, value=-1.0)
        del image
        steepest = precondition(residual)
        previous, energy = energy, (residual * steepest).sum(0)
        ratio = torch.where(going, energy / torch.where(going, previous, 1.0), 0.0)
        direction = direction.mul_(ratio).add_(steepest)
    found[:, at_work] = Z
    return found, steps


def conjugate_gradient(
    device: TorchDevice,
    design: Design,
    targets: FloatArray | CSR,
    penalty: Penalty,
    tolerance: float,
    max_iter: int,
    start: FloatArray | None,
) -> tuple[FloatArray, int] | None:
    """The squared loss by conjugate gradients, as `classifier.conjugate_gradient.solve_conjugate_gradient`."""
    if 100.0 * design.X.size * targets.shape[1] < device.least_work:
        return None
    right = penalty.rotate(design.cross(targets) + penalty.beta * penalty.pull)
    begin = penalty.rotated_anchor() if start is None else penalty.rotate(start)
    rows, mean = device.rows(design.X), device.put(design.mean)
    diagonal = device.put(design.gram_diagonal())[:, None]
    found, slowest = np.empty_like(right), 0
    width = device.width(8.0 * (3 * design.n_rows + 8 * design.n_features), right.shape[1])
    for at in range(0, right.shape[1], width):
        block = slice(at, at + width)
        betas = device.put(penalty.beta * penalty.strengths[block])
        goal, solution = device.put(right[:, block]), device.put(begin[:, block])

        def operators(columns: Any, betas: Any = betas) -> tuple[Operator, Operator]:
            strengths = betas[columns]

            def apply(Z: Any) -> Any:
                scores = rows.times(Z).sub_(mean @ Z)
                image = rows.transposed_times(scores).addr_(mean, scores.sum(0), alpha=-1.0)
                return image.addcmul_(Z, strengths.expand_as(Z))

            return apply, lambda R: R / (diagonal + strengths)

        limit, taken = tolerance * goal.norm(dim=0), 0
        everything = torch.arange(goal.shape[1], device=goal.device)
        for _ in range(4):  # the residual that is carried along drifts: it is believed only after a look
            residual = goal - operators(everything)[0](solution)
            if taken >= max_iter or bool((residual.norm(dim=0) <= limit).all()):
                break
            step, steps = conjugate_columns(operators, residual, 0.5 * limit, max_iter - taken)
            solution += step
            taken += int(steps.max())
        found[:, block], slowest = get(solution), max(slowest, taken)
    return penalty.unrotate(found), slowest


def newton(
    device: TorchDevice, X: CSR | FloatArray, answers: FloatArray | CSR, loss: str, penalty: Penalty,
    fit_intercept: bool, known: FloatArray | None, squares: FloatArray, start: Start | None, tolerance: float,
    max_iter: int, from_start: bool = False,
) -> NewtonResult | None:  # fmt: skip
    """Minimise the anchored objective of separate labels, as `classifier.newton.minimise_newton`.

    squares : (d,), the diagonal of Xc'Xc
    """
    n_labels = int(answers.shape[1])
    if penalty.coupled or not hasattr(X, "size") or 100.0 * X.size * n_labels < device.least_work:
        return None  # of what has no size, only products are known
    dtype = device.dtype if tolerance >= _SINGLE_TOLERANCE else torch.float64
    rows = device.rows(X, dtype)
    n_rows, n_features = X.shape
    width = device.width(dtype.itemsize * (8.0 * n_rows + 12.0 * n_features), n_labels)
    found = NewtonResult(np.empty((n_features, n_labels)), np.empty(n_labels), np.empty(n_labels), 0, 0)
    order = np.argsort(-column_sums(answers), kind="stable")  # labels of like frequency take about as many steps
    by_columns: Any = answers if isinstance(answers, np.ndarray) else answers.tocsc()
    outer = inner = 0
    for at in range(0, n_labels, width):
        labels = order[at : at + width]
        problem = _Problem(
            device, rows, device.put(by_columns[:, labels], dtype), loss, penalty, labels, fit_intercept,
            None if known is None else device.put(known[:, labels], dtype), squares,
        )  # fmt: skip
        begin = None if start is None else (start[0][:, labels], start[1][labels])
        slowest, steps = problem.minimise(begin, tolerance, max_iter, found, from_start)
        outer, inner = max(outer, slowest), inner + steps
    return NewtonResult(found.weights, found.intercept, found.violations, outer, inner)


class _Problem:
    """The objective of some labels on the device, and its minimisation."""

    def __init__(
        self, device: TorchDevice, rows: Any, answers: Any, loss: str, penalty: Penalty, labels: IntArray,
        fit_intercept: bool, known: Any, squares: FloatArray,
    ) -> None:  # fmt: skip
        self.device, self.rows, self.loss, self.labels = device, rows, loss, labels
        self.beta, self.fit_intercept, self.known = penalty.beta, fit_intercept, known
        self.answers = (answers > 0).to(answers.dtype) * 2.0 - 1.0 if loss == "squared_hinge" else answers
        if loss == "logistic":
            self.answers = (answers > 0).to(answers.dtype)
        self.anchor = device.put(penalty.anchor[:, labels], answers.dtype)
        self.squares = device.put(squares, answers.dtype)[:, None]

    def terms(self, scores: Any, labels: Any = slice(None)) -> tuple[Any, Any, Any]:
        """The losses summed over the rows (k,), and both derivatives (n, k) (`classifier.losses`)."""
        answers = self.answers[:, labels]
        if self.loss == "logistic":
            cost = torch.logaddexp(scores, torch.zeros((), dtype=scores.dtype, device=scores.device))
            cost.addcmul_(answers, scores, value=-1.0)
            chance = torch.sigmoid(scores)
            first, second = chance - answers, torch.sigmoid(-scores).mul_(chance)
        elif self.loss == "squared":
            first = scores - answers
            cost, second = 0.5 * first.square(), torch.ones_like(first)
        else:
            short = (1.0 - answers * scores).clamp_min_(0.0)
            cost, first, second = 0.5 * short.square(), -answers * short, (short > 0.0).to(scores.dtype)
        if self.known is not None:
            known = self.known[:, labels]
            cost, first, second = cost * known, first * known, second * known
        return cost.sum(0), first, second

    def slopes(self, V: Any, first: Any) -> tuple[Any, Any]:
        slope_b = first.sum(0) if self.fit_intercept else torch.zeros_like(V[0])
        return self.rows.transposed_times(first).add_(V - self.anchor, alpha=self.beta), slope_b

    def _lengths(self, V: Any, first: Any) -> Any:
        """The lengths of gradients, above 0."""
        slope, slope_b = self.slopes(V, first)
        lengths = torch.hypot(slope.norm(dim=0), slope_b)
        return torch.where(lengths > 0.0, lengths, 1.0)

    def values(self, V: Any) -> Any:
        return 0.5 * self.beta * (V - self.anchor).square().sum(0)

    def first_point(self, start: Start | None, from_start: bool) -> tuple[Any, Any, Any]:
        """Where to begin (`classifier.newton.first_point`), and the scale of gradients."""
        V, zero = self.anchor.clone(), torch.zeros_like(self.anchor[0])
        constant = zero
        if self.fit_intercept:
            constant = self.device.put(get_loss(self.loss).best_constant(get(self.answers)), V.dtype)
        _, first, _ = self.terms(constant.expand(self.answers.shape))
        scale = self._lengths(torch.zeros_like(V), first)
        b = constant - self.rows.times(V).mean(0) if self.fit_intercept and bool(V.any()) else constant
        if start is None:
            return V, b, scale
        given = self.device.put(start[0], V.dtype), self.device.put(start[1], V.dtype) if self.fit_intercept else zero
        if from_start:
            return *given, self._lengths(given[0], self.terms(self.rows.times(given[0]) + given[1])[1])
        costs = [self.terms(self.rows.times(W) + c)[0] + self.values(W) for W, c in (given, (V, b))]
        less = costs[0] < costs[1]
        return torch.where(less, given[0], V), torch.where(less, given[1], b), scale

    def minimise(
        self, start: Start | None, tolerance: float, max_iter: int, found: NewtonResult, from_start: bool
    ) -> tuple[int, int]:
        """Minimise, and write what was found; returns the iterations of the slowest label, and inner steps of all."""
        V, b, scale = self.first_point(start, from_start)
        scores = self.rows.times(V).add_(b)
        costs, first, second = self.terms(scores)
        costs = costs + self.values(V)
        stuck = torch.zeros_like(b, dtype=torch.bool)
        outer = inner = 0
        while True:
            slope, slope_b = self.slopes(V, first)
            violations = torch.hypot(slope.norm(dim=0), slope_b) / scale
            going = (violations > tolerance) & ~stuck
            n_going = int(going.sum())
            if outer == max_iter or not n_going:
                found.keep(self.labels, get(V), get(b), get(violations))
                return outer, inner
            if len(going) - n_going >= max(1.0, _DROPPED_SHARE * len(going)):
                found.keep(self.labels, get(V), get(b), get(violations))
                kept = going.nonzero()[:, 0]
                self._take(kept)
                V, scores, second, slope = (part.index_select(1, kept) for part in (V, scores, second, slope))
                parts = (b, costs, slope_b, scale, violations, going, stuck)
                b, costs, slope_b, scale, violations, going, stuck = (part[kept] for part in parts)
            del first
            forcing = violations.sqrt().clamp_max(0.3)
            forcing = torch.maximum(forcing, 0.3 * tolerance / violations.clamp_min(tolerance))
            forcing[~going] = 1.0
            Z, c, steps = self._direction(second, slope, slope_b, forcing)
            Z, c = Z * going, c * going
            step, scores, costs, first, second = self._line_search(V, Z, c, scores, costs, slope, slope_b)
            V, b = V.addcmul_(Z, step.expand_as(Z)), b + step * c
            stuck |= going & (step == 0.0)
            outer += int(bool((going & ~stuck).any()))
            inner += steps

    def _take(self, kept: Any) -> None:
        self.labels = self.labels[kept.cpu().numpy()]
        self.answers, self.anchor = self.answers.index_select(1, kept), self.anchor.index_select(1, kept)
        self.known = None if self.known is None else self.known.index_select(1, kept)

    def _direction(self, second: Any, slope: Any, slope_b: Any, forcing: Any) -> tuple[Any, Any, int]:
        """Newton's step, its residual at most the share ``forcing`` (k,) of the gradient."""
        sums = second.sum(0)
        share = torch.where(sums > 0.0, 1.0 / torch.where(sums > 0.0, sums, 1.0), 0.0)
        means = (sums / second.shape[0]).clamp_min(_SMALLEST_WEIGHT)
        right, weighted = -slope, None
        if self.fit_intercept:
            weighted = self.rows.transposed_times(second)
            right.addcmul_(weighted, (share * slope_b).expand_as(right))
        n_columns = second.shape[1]

        def operators(columns: Any) -> tuple[Operator, Operator]:
            whole = len(columns) == n_columns
            mine = second if whole else second.index_select(1, columns)
            part = weighted if whole or weighted is None else weighted.index_select(1, columns)
            shares, weights = share[columns], means[columns]
            diagonal = weights * self.squares + self.beta

            def apply(Z: Any) -> Any:
                change = self.rows.times(Z).mul_(mine)
                image = self.rows.transposed_times(change).add_(Z, alpha=self.beta)
                if part is not None:
                    image.addcmul_(part, (shares * change.sum(0)).expand_as(part), value=-1.0)
                return image

            return apply, lambda R: R / diagonal

        Z, steps = conjugate_columns(operators, right, forcing * right.norm(dim=0), _MAX_INNER)
        inner = int(steps.sum())
        if weighted is None:
            return Z, torch.zeros_like(slope_b), inner
        return Z, -share * (slope_b + (weighted * Z).sum(0)), inner

    def _line_search(
        self, V: Any, Z: Any, c: Any, scores: Any, costs: Any, slope: Any, slope_b: Any
    ) -> tuple[Any, Any, Any, Any, Any]:
        change = self.rows.times(Z).add_(c)
        fall = (slope * Z).sum(0) + slope_b * c
        limit = costs + 500.0 * torch.finfo(costs.dtype).eps * costs.abs()
        step = torch.ones_like(costs)
        moved = scores + change
        costs, first, second = self.terms(moved)
        for halving in range(_MAX_HALVINGS):
            reached = costs + self.values(V + step * Z)
            short = (reached > limit + _SUFFICIENT * step * fall).nonzero()[:, 0]
            if not len(short):
                break
            step[short] = 0.5 * step[short] if halving < _MAX_HALVINGS - 1 else 0.0
            moved[:, short] = scores[:, short] + step[short] * change[:, short]
            costs[short], first[:, short], second[:, short] = self.terms(moved[:, short], short)
        return step, moved, costs + self.values(V + step * Z), first, second


_ENTRY_SHARE = 0.2  # of the worst violation: what is less bad waits for the next gradient
_RIDGE = 1.0 + 1e-12
_WIDEST, _ROUNDS, _SETTLING = 512, 60, 60


def lasso(
    device: TorchDevice, label_gram: FloatArray, task: ColumnTask, tol: float
) -> tuple[FloatArray, FloatArray, IntArray] | None:
    """The codes (m, k) of all columns at once, their relative duality gaps (k,) and rounds (k,).

    Each column has an active set of its own, padded to one width. Rounds alternate between the optimum of all active
    sets, by Cholesky factors of all their blocks, and one product with the Gram that says what enters. What does not
    get to its gap here is left for the CPU, which starts from it.
    """
    n_labels, n_columns = len(label_gram), len(task.lams)
    if float(n_labels) * n_labels * n_columns < device.least_work:
        return None
    device.need(8.0 * n_labels**2, f"a Gram of {n_labels:,} labels")
    gram = device.put(label_gram)
    codes, gaps, rounds = np.zeros((n_labels, n_columns)), np.empty(n_columns), np.zeros(n_columns, dtype=np.intp)
    width = device.width(8.0 * (5 * n_labels + 3 * 64**2), n_columns)
    for at in range(0, n_columns, width):
        block = slice(at, at + width)
        solved = _ActiveSets(device, gram, task, block).solve(tol)
        codes[:, block], gaps[block], rounds[block] = (part.T if part.ndim == 2 else part for part in solved)
    return codes, gaps, rounds


class _ActiveSets:
    """The lassos of some columns; every tensor has one row a column: (k, m), and (k, p) on the active sets."""

    def __init__(self, device: TorchDevice, gram: Any, task: ColumnTask, block: slice) -> None:
        self.gram, self.diagonal = gram, gram.diagonal()
        self.correlation, self.energy = device.put(task.correlations[block]), device.put(task.energies[block])
        self.lam = device.put(task.lams[block])[:, None]
        self.own = torch.as_tensor(np.array(task.own[block]), device=gram.device)
        self.code = torch.zeros_like(self.correlation)
        if task.start is not None:
            self.code = device.put(task.start[:, block].tocsr()).T.contiguous()
            self.code *= self.diagonal > 0.0
        self.forbidden = (self.own >= 0).nonzero()[:, 0]
        self.code[self.forbidden, self.own[self.forbidden]] = 0.0

    def solve(self, tol: float) -> tuple[FloatArray, FloatArray, IntArray]:
        n_columns = len(self.code)
        peak = self.correlation.abs().amax(1, keepdim=True)
        slack = torch.where(peak > 0.0, 0.5 * tol * self.lam, tol)
        rounds = torch.zeros(n_columns, dtype=torch.long, device=self.code.device)
        alone = torch.zeros(n_columns, dtype=torch.bool, device=self.code.device)
        going = torch.arange(n_columns, device=self.code.device)
        if bool(self.code.any()):
            self._settle(going, torch.empty((n_columns, 0), dtype=torch.long, device=self.code.device))
        for _ in range(_ROUNDS):
            gradient = self._gradient(going)
            size = gradient.abs().masked_fill_(self.code[going] != 0.0, 0.0)
            worst = size.amax(1, keepdim=True) - self.lam[going]
            active = (self.code[going] != 0.0).sum(1)
            still = (worst > slack[going])[:, 0] & (active < _WIDEST // 2)
            if not bool(still.any()):
                break
            going, gradient, size, worst, active = (part[still] for part in (going, gradient, size, worst, active))
            rounds[going] += 1
            limit = torch.where(alone[going], 1, active.clamp_min(FIRST_ENTRY))
            values, entering = size.topk(min(int(limit.max()), size.shape[1]), dim=1)
            allowed = torch.arange(entering.shape[1], device=size.device) < limit[:, None]
            enters = (values > self.lam[going] + _ENTRY_SHARE * worst) & allowed
            entering = torch.where(enters, entering, -1)
            before = self.code[going]
            for part in _alike(limit):
                few = entering[part][:, : int(limit[part].max())]
                self._settle(going[part], few, -gradient[part].gather(1, few.clamp_min(0)).sign())
            moved = (self.code[going] != before).any(1)
            # labels that enter together can push each other out again; one that enters alone cannot, but for rounding
            left = moved | ~alone[going]
            alone[going] = ~moved
            going = going[left]
            if not len(going):
                break
        return get(self.code), get(self._gaps()), rounds.cpu().numpy()

    def _gradient(self, columns: Any) -> Any:
        """``L s - c`` of some columns; zero where a label may not enter."""
        found = self.code[columns] @ self.gram - self.correlation[columns]
        own = self.own[columns]
        inside = (own >= 0).nonzero()[:, 0]
        found[inside, own[inside]] = 0.0
        return found

    def _settle(self, columns: Any, entering: Any, entry_signs: Any = None) -> None:
        """Move codes to the optimum of their active sets, with what enters (-1: nothing); what crosses zero leaves."""
        code = self.code[columns]
        size, places = code.abs().topk(max(int((code != 0.0).sum(1).max()), 1), dim=1)
        active, signs = size > 0.0, code.gather(1, places).sign()
        if entry_signs is not None:
            places, active = torch.cat((places, entering.clamp_min(0)), 1), torch.cat((active, entering >= 0), 1)
            signs = torch.cat((signs, entry_signs), 1)
        values = code.gather(1, places) * active
        lam, target_c = self.lam[columns], self.correlation[columns].gather(1, places)
        block = self.gram[places[:, :, None], places[:, None, :]]
        working = torch.arange(len(columns), device=code.device)
        for _ in range(_SETTLING):
            on, s, z = active[working], values[working], signs[working]
            both = on[:, :, None] & on[:, None, :]
            matrix = torch.where(both, block[working], 0.0)
            diagonal = matrix.diagonal(dim1=1, dim2=2)
            diagonal.copy_(torch.where(on, diagonal * _RIDGE, 1.0))
            lower, failed = torch.linalg.cholesky_ex(matrix)
            right = torch.where(on, target_c[working] - lam[working] * z, 0.0)
            goal = torch.cholesky_solve(right[:, :, None], lower)[:, :, 0]
            bad = (failed != 0) | ~goal.isfinite().all(1)
            agrees = (goal * z > 0.0) | ~on
            whole = agrees.all(1) & ~bad
            fresh = on & (s == 0.0) & ~agrees
            leaves = fresh.any(1) & ~whole
            # the first crossing on the way to the goal; the quadratic falls all along it
            time = torch.where(on & ~agrees & (s != 0.0), s / (s - goal), torch.inf)
            first = time.amin(1, keepdim=True).clamp_max(1.0)
            walked = torch.where(time <= first, 0.0, s + first * (goal - s))
            moved = torch.where(whole[:, None], goal, torch.where(leaves[:, None] | bad[:, None], s, walked))
            values[working] = torch.where(on, moved, 0.0)
            active[working] = torch.where(leaves[:, None], on & ~fresh, on & ((moved != 0.0) | whole[:, None]))
            signs[working] = torch.where(moved != 0.0, moved.sign(), z)
            working = working[~(whole | bad)]
            if not len(working):
                break
        code.scatter_(1, places, 0.0)
        code.scatter_add_(1, places, values)
        self.code[columns] = code

    def _gaps(self) -> Any:
        """The relative duality gaps (`structure.lasso.duality_gap`)."""
        everything = torch.arange(len(self.code), device=self.code.device)
        gradient, energy, lam = self._gradient(everything), self.energy, self.lam[:, 0]
        fit = (self.code * self.correlation).sum(1)
        squares = (energy - fit + (self.code * gradient).sum(1)).clamp_min(0.0)
        steepest = gradient.abs().amax(1)
        scale = torch.where(steepest <= lam, 1.0, lam / steepest.clamp_min(1e-300))
        value = 0.5 * energy + 0.5 * (self.code * (gradient - self.correlation)).sum(1) + lam * self.code.abs().sum(1)
        dual = scale * (energy - fit) - 0.5 * scale.square() * squares
        return torch.where(energy > 0.0, (value - dual) / (0.5 * energy).clamp_min(1e-300), 0.0)


def _alike(sizes: Any) -> list[Any]:
    """Columns whose sizes are alike, together: all of them are padded to the largest."""
    level = sizes.double().log2().ceil()
    return [(level == one).nonzero()[:, 0] for one in level.unique().tolist()]
