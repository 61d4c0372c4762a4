"""What is made of scores, on a device of PyTorch: thresholds, probabilities, the best labels of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from streamlabel.metrics.topk import check_k
from streamlabel.scale.torch_device import TorchDevice, get
from streamlabel.streaming.blocks import ClassifierBlocks
from streamlabel.streaming.pruned import SparseBlocks
from streamlabel.types import CSR, FloatArray, IntArray

_WORK = 1e3  # of a threshold or a sigmoid, in multiplications a score


def f1_thresholds(device: TorchDevice, scores: FloatArray, answers: FloatArray) -> FloatArray | None:
    """The score above which predicting a label gives the best F1 (`streaming.calibration.best_f1_thresholds`)."""
    if not len(scores) or _WORK * scores.size < device.least_work:
        return None
    found = np.empty(scores.shape[1])
    for at, given, truth in _blocks(device, scores, answers):
        ranked, order = given.sort(dim=0, descending=True, stable=True)
        hits = truth.gather(0, order).cumsum(0)
        positives = hits[-1]
        number = torch.arange(1, len(given) + 1, dtype=given.dtype, device=given.device)[:, None]
        f1 = 2.0 * hits / (number + positives)
        below = torch.cat((ranked[1:], ranked[-1:] - 1e-12))
        f1[ranked == below] = -1.0  # a threshold cannot part equal scores
        # the first of equal ones, which argmax of PyTorch does not promise
        best = torch.where(f1 == f1.amax(0), number, torch.inf).argmin(0)[None]
        middle = 0.5 * (ranked.gather(0, best) + below.gather(0, best))[0]
        found[at] = get(torch.where(positives > 0, middle, torch.nan))
    return found


def sigmoids(
    device: TorchDevice, z: FloatArray, target: FloatArray, slope: FloatArray, offset: FloatArray, n_iter: int
) -> tuple[FloatArray, FloatArray] | None:
    """Slopes and offsets (k,) of least log loss (`streaming.calibration`), by Newton steps with halving."""
    if _WORK * z.size < device.least_work:
        return None
    found = np.array((slope, offset))
    for at, values, goal in _blocks(device, z, target):
        steep, shift = device.put(slope[at]), device.put(offset[at])
        loss = _log_loss(values, goal, steep, shift)
        for _ in range(n_iter):
            chance = torch.sigmoid(steep * values + shift)
            error, weight = chance - goal, (chance * (1.0 - chance)).clamp_min(1e-12)
            g1, g0 = (error * values).sum(0), error.sum(0)
            weighted = weight * values
            h11, h10, h00 = (weighted * values).sum(0) + 1e-9, weighted.sum(0), weight.sum(0) + 1e-9
            determinant = h11 * h00 - h10 * h10
            step1, step0 = (h00 * g1 - h10 * g0) / determinant, (h11 * g0 - h10 * g1) / determinant
            size = torch.ones_like(steep)
            for _ in range(20):
                trial = _log_loss(values, goal, steep - size * step1, shift - size * step0)
                worse = trial > loss + 1e-12
                if not bool(worse.any()):
                    break
                size = torch.where(worse, 0.5 * size, size)
            else:
                size, trial = torch.where(worse, 0.0, size), torch.where(worse, loss, trial)
            steep, shift, loss = steep - size * step1, shift - size * step0, trial
            if float(torch.maximum((size * step1).abs(), (size * step0).abs()).max()) < 1e-4:
                break
        found[:, at] = get(steep), get(shift)
    return found[0], found[1]


def top_k(
    device: TorchDevice, X: CSR | FloatArray, classifiers: ClassifierBlocks, k: int
) -> tuple[IntArray, FloatArray] | None:
    """The k best labels of each row and their scores; ties go to the lower number."""
    n_labels, size = classifiers.n_labels, device.dtype.itemsize
    pruned = isinstance(classifiers, SparseBlocks)  # dense, they would not fit
    if pruned or check_k(k) > n_labels or float(X.size) * n_labels < device.least_work:
        return None
    device.need(2.0 * size * X.shape[1] * n_labels, f"{n_labels:,} classifiers")
    weights = device.kept(classifiers, device.dtype, lambda: device.put(classifiers.weights(), device.dtype))
    shift, rows = device.put(classifiers.intercept, device.dtype), device.rows(X, device.dtype)
    best, values = np.empty((X.shape[0], k), dtype=np.int64), np.empty((X.shape[0], k))
    step = device.width(3.0 * size * n_labels + size * X.shape[1], X.shape[0])
    for at in range(0, X.shape[0], step):
        scores = rows.part(at, min(at + step, X.shape[0])) @ weights
        scores += shift
        level, columns = scores.topk(k, dim=1)
        tied = ((scores >= level[:, -1:]).sum(1) > k).nonzero()[:, 0]
        if len(tied):
            columns[tied] = scores[tied].sort(dim=1, descending=True, stable=True)[1][:, :k]
        columns = columns.sort(dim=1)[0]
        found, order = scores.gather(1, columns).sort(dim=1, descending=True, stable=True)
        best[at : at + step], values[at : at + step] = columns.gather(1, order).cpu().numpy(), get(found)
    return best, values


def _log_loss(z: Any, target: Any, slope: Any, offset: Any) -> Any:
    margin = slope * z + offset
    return (torch.logaddexp(margin, torch.zeros_like(margin[:1])) - target * margin).sum(0)


def _blocks(device: TorchDevice, *parts: FloatArray) -> Any:
    """Blocks of columns: their place, and the parts on the device."""
    n_columns = parts[0].shape[1]
    width = device.width(8.0 * 12 * len(parts[0]), n_columns)
    for start in range(0, n_columns, width):
        at = slice(start, min(start + width, n_columns))
        yield at, *(device.put(part[:, at]) for part in parts)
