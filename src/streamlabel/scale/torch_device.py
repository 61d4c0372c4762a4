"""A GPU for the large products, factors and solves, by PyTorch; the CPU goes on where there is none or it is too small.

::

    with on_device():
        model = StreamingLabelClassifier().fit(X, Y)
        model.add_labels(X, Y_new)
        best, scores = model.predict_top_k(X, 5)

Nothing else changes: the model is the one that the CPU learns, up to rounding (squared loss) or the tolerance of the
solver (others), and can be used and stored without a GPU. Inside the block the solvers offer their large operations to
the device (`stats.accelerator`). One that is too small stays on the CPU without a word; one that does not fit into the
memory of the device stays there with a `DeviceWarning`, once.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.data.files import available_memory
from streamlabel.errors import DataError, DeviceWarning, MissingExtraError
from streamlabel.stats.accelerator import accelerating
from streamlabel.types import CSR, FloatArray

try:
    import torch
except ImportError:
    raise MissingExtraError("torch", "gpu", "learning on a GPU") from None

# The modules that have the operations; each is a function of the device and of what the solver passes.
_MODULES = {
    **dict.fromkeys(("eigh", "ridge", "product"), "streamlabel.scale.torch_ridge"),
    **dict.fromkeys(("newton", "conjugate_gradient", "lasso"), "streamlabel.scale.torch_solvers"),
    **dict.fromkeys(("sigmoids", "f1_thresholds", "top_k"), "streamlabel.scale.torch_scores"),
}
LEAST_WORK = 1e9  # multiplications below which a GPU is not asked: some hundredths of a second of one core
_KEPT = 4  # factors and classifiers of which rows and weights stay on the device
_BLOCK_CELLS = 1 << 26  # of rows that are made dense: half a gigabyte
_MOST_CELLS = 1 << 30  # of one sparse product
_FULL = 0.015  # above this share of values a dense product takes less time than a sparse one (58 TFLOP/s, 4.2 TB/s)
_PANEL = 2048


class NotHere(Exception):
    """An operation that this device cannot do; the text says why, and the CPU does it."""


class TorchDevice:
    """A device of PyTorch on which large operations are done.

    Parameters
    ----------
    device : "cuda", "cuda:1", ... or "cpu"
    dtype : "float64", or "float32" for factors (mended in float64 as on the CPU) and Newton's iterations: half the
        memory, and much faster on cards that are slow in float64
    least_work : multiplications from which on it is asked; default 1e9 on a GPU, 0 on the CPU
    memory : bytes that may be used; default: what is free at the time
    """

    def __init__(
        self, device: str, dtype: str = "float64", *, least_work: float | None = None, memory: int | None = None
    ) -> None:
        if dtype not in ("float64", "float32"):
            raise DataError(f"dtype is {dtype!r}; it must be 'float64' or 'float32'")
        self.device = torch.device(device)
        self.dtype = getattr(torch, dtype)
        self.is_gpu = self.device.type == "cuda"
        self.least_work = (LEAST_WORK if self.is_gpu else 0.0) if least_work is None else least_work
        self._memory = memory
        self._said: set[str] = set()
        self._kept: dict[tuple[Any, ...], tuple[weakref.ref[Any], Any]] = {}

    def run(self, operation: str, *arguments: Any) -> Any:
        """Do an operation; None if it is too small, or if there is too little memory for it, with a warning."""
        try:
            return getattr(import_module(_MODULES[operation]), operation)(self, *arguments)
        except (NotHere, torch.cuda.OutOfMemoryError) as error:
            self.give_up(operation, error)
        return None

    def give_up(self, operation: str, error: Exception) -> None:
        """Let go of what is kept here, and say why the CPU does this operation; once for each."""
        reason = str(error) if isinstance(error, NotHere) else f"the memory of {self.device} was too small"
        self._kept.clear()
        if self.is_gpu:
            torch.cuda.empty_cache()
        if operation not in self._said:
            self._said.add(operation)
            warnings.warn(f"{operation} runs on the CPU: {reason}", DeviceWarning, stacklevel=4)

    def free(self) -> int:
        """Bytes that can still be used."""
        if self._memory is not None:
            return self._memory
        if not self.is_gpu:
            return available_memory()
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0] + unused)

    def need(self, n_bytes: float, what: str) -> None:
        """Raise `NotHere` unless so many bytes are free."""
        free = self.free()
        if n_bytes > 0.9 * free:
            raise NotHere(f"{what} would take {n_bytes / 2**30:.2g} GiB, and {self.device} has {free / 2**30:.2g} free")

    def width(self, column_bytes: float, n_columns: int) -> int:
        """How many columns of so many bytes are worked on at once: what fits into half of the free memory."""
        most = int(0.5 * self.free() / max(column_bytes, 1.0))
        if most < min(16, n_columns):
            raise NotHere(f"16 columns would take {16 * column_bytes / 2**30:.2g} GiB")
        return min(most, n_columns, 1 << 14)

    def put(self, values: Any, dtype: Any = None) -> Any:
        """A matrix on the device, dense; sparse ones travel as they are."""
        dtype = torch.float64 if dtype is None else dtype
        if isinstance(values, np.ndarray):
            return _tensor(np.ascontiguousarray(values), self).to(dtype)
        return Rows(self, values.tocsr(), dtype, keep_dense=False).dense(0, values.shape[0])

    def rows(self, X: CSR | FloatArray, dtype: Any = None) -> Rows:
        """A copy of these rows on the device."""
        return Rows(self, X, torch.float64 if dtype is None else dtype)

    def kept(self, owner: Any, kind: Any, make: Callable[[], Any]) -> Any:
        """What was made of an object that never changes (no array is one), or is made now and kept while that lives."""
        key = (id(owner), kind)
        found = self._kept.pop(key, None)
        if found is None or found[0]() is not owner:
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            found = (weakref.ref(owner, lambda _: self._kept.pop(key, None)), make())
        self._kept[key] = found
        return found[1]


def get(tensor: Any) -> FloatArray:
    """A tensor as a float64 array."""
    return np.asarray(tensor.to(torch.float64).cpu().numpy())


@contextmanager
def on_device(device: str = "auto", dtype: str = "float64", **options: Any) -> Iterator[TorchDevice | None]:
    """Do the large operations on a GPU inside the block; ``as`` gives the device, None if there is none.

    device : "auto" is the GPU if there is one, and says so if there is none; "cuda" or "cuda:1" must be there; "cpu" is
        PyTorch on the CPU, which is for tests
    dtype, options : as `TorchDevice` has them
    """
    if device != "cpu" and not torch.cuda.is_available():
        problem = f"PyTorch {torch.__version__} sees no GPU here"
        if device != "auto":
            raise DataError(f'device is {device!r}, and {problem}; device="auto" then goes on with the CPU')
        warnings.warn(f"{problem}; everything runs on the CPU as it always does", DeviceWarning, stacklevel=3)
        yield None
        return
    chosen = TorchDevice("cuda" if device == "auto" else device, dtype, **options)
    with accelerating(chosen):
        yield chosen


class Rows:
    """Rows X (n, d) on the device: sparse, or dense where that takes less time and there is room."""

    def __init__(self, device: TorchDevice, X: CSR | FloatArray, dtype: Any, *, keep_dense: bool = True) -> None:
        self.shape: tuple[int, int] = X.shape
        self._device, self._dtype = device, dtype
        self._sparse: tuple[Any, Any] | None = None
        self._X: Any = X
        self._dense: Any = None
        cells = float(X.shape[0]) * X.shape[1]
        if not sparse.issparse(X):
            device.need(2.0 * cells * dtype.itemsize, f"rows of {X.shape[0]:,} x {X.shape[1]:,}")
            self._dense = device.put(X, dtype)
            return
        device.need(40.0 * X.nnz, f"{X.nnz:,} values of rows")
        self._values = self._parts(X)
        if keep_dense and X.nnz > _FULL * cells and 4.0 * cells * dtype.itemsize < device.free():
            self._dense = self.dense(0, self.shape[0])

    def times(self, Z: Any) -> Any:
        """``X Z``, (n, k)."""
        return self._dense @ Z if self._dense is not None else _sparse_product(self._pair()[0], Z)

    def transposed_times(self, R: Any) -> Any:
        """``X'R``, (d, k)."""
        return self._dense.T @ R if self._dense is not None else _sparse_product(self._pair()[1], R)

    def dense(self, start: int, stop: int) -> Any:
        """Some of the rows, dense."""
        if self._dense is not None:
            return self._dense[start:stop]
        indptr, indices, values = self._values
        first, last = int(self._X.indptr[start]), int(self._X.indptr[stop])
        counts = indptr[start + 1 : stop + 1] - indptr[start:stop]
        number = torch.arange(stop - start, device=self._device.device).repeat_interleave(counts)
        block = torch.zeros((stop - start, self.shape[1]), dtype=self._dtype, device=self._device.device)
        block.view(-1)[number * self.shape[1] + indices[first:last]] = values[first:last]
        return block

    def part(self, start: int, stop: int) -> Any:
        """Some of the rows, dense or sparse as they are kept."""
        if self._dense is not None or (start, stop) != (0, self.shape[0]):
            return self.dense(start, stop)
        return self._pair()[0]

    def pick(self, numbers: Any) -> Any:
        """Rows of these numbers, dense."""
        return self._device.put(self._X[numbers], self._dtype)

    def gram(self, mean: Any, dtype: Any) -> Any:
        """The lower half of ``Xc'Xc`` (d, d) in this precision, from blocks of rows that are centred and made dense."""
        n_rows, order = self.shape
        step = max(_BLOCK_CELLS // order, 1)
        return _half_gram(
            (self.dense(at, min(at + step, n_rows)) - mean for at in range(0, n_rows, step)), order, dtype
        )

    def kernel(self, mean: Any, dtype: Any) -> Any:
        """The kernel ``Xc Xc'`` (n, n), of dense rows the lower half; of sparse ones by products with dense blocks."""
        (n_rows, n_features), dense = self.shape, self._dense
        if dense is not None:
            step = max(_BLOCK_CELLS // n_rows, 1)
            starts = range(0, n_features, step)
            blocks = (dense[:, at : at + step].T - mean[at : at + step, None] for at in starts)
            return _half_gram(blocks, n_rows, dtype)
        kernel = torch.empty((n_rows, n_rows), dtype=dtype, device=self._device.device)
        step = max(_BLOCK_CELLS // n_features, 1)
        for start in range(0, n_rows, step):
            block = self.dense(start, min(start + step, n_rows)).T.contiguous()
            kernel[:, start : start + step] = self.times(block).to(dtype)
        shift = self.times(mean[:, None])
        return kernel.sub_((shift - (mean @ mean)).to(dtype)).sub_(shift.T.to(dtype))

    def _pair(self) -> tuple[Any, Any]:
        """Both X and X' as sparse matrices."""
        if self._sparse is None:
            turned = self._parts(sparse.csr_array(self._X.T))
            with warnings.catch_warnings():  # PyTorch calls them new
                warnings.simplefilter("ignore", UserWarning)
                self._sparse = (
                    torch.sparse_csr_tensor(*self._values, size=self.shape),
                    torch.sparse_csr_tensor(*turned, size=self.shape[::-1]),
                )
        return self._sparse

    def _parts(self, X: CSR) -> tuple[Any, Any, Any]:
        indptr, indices, values = (_tensor(part, self._device) for part in (X.indptr, X.indices, X.data))
        return indptr.long(), indices.long(), values.to(self._dtype)


def _tensor(values: Any, device: TorchDevice) -> Any:
    """A copy of an array on the device, which may be written to."""
    if not device.is_gpu:
        return torch.tensor(values)
    return torch.as_tensor(values if values.flags.writeable else values.copy(), device=device.device)


def _sparse_product(A: Any, Z: Any) -> Any:
    """``A Z`` with a sparse A, so many columns at a time that 32 bits can count their cells."""
    step = max(_MOST_CELLS // max(A.shape), 1)
    if Z.shape[1] <= step:
        return A @ Z
    found = torch.empty((A.shape[0], Z.shape[1]), dtype=Z.dtype, device=Z.device)
    for start in range(0, Z.shape[1], step):
        found[:, start : start + step] = A @ Z[:, start : start + step].contiguous()
    return found


def _half_gram(blocks: Iterable[Any], order: int, dtype: Any) -> Any:
    """The lower half of the sum of ``B'B`` over blocks (any, order); a panel of its rows at a time."""
    gram = None
    for block in blocks:
        block = block.to(dtype)
        if gram is None:
            gram = torch.zeros((order, order), dtype=dtype, device=block.device)
        for panel in range(0, order, _PANEL):
            stop = min(panel + _PANEL, order)
            gram[panel:stop, :stop].addmm_(block[:, panel:stop].T, block[:, :stop])
    return gram
