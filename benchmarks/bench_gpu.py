"""Learning on a GPU: every operation by itself, then fit, 10,000 labels at once, logistic labels and predictions.

``python benchmarks/bench_gpu.py`` takes some minutes on one large GPU; ``--quick`` runs small shapes, also on the CPU
(``--device cpu``), and checks the same figures. ``--reference`` times the CPU of this machine instead, without PyTorch,
on some of the labels, and says what all would take. Needs numpy, scipy, scikit-learn and PyTorch.

The sets are made up: EURLEX57K-sized (45,000 x 5,000, 4,271 labels), and as wide as Wiki10-31K (14,146 x 101,938,
30,938 labels). Rates are of the multiplications and additions, or bytes, that an operation cannot do without; the
share is that of the ceiling measured at the start: a matrix product, or a copy.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier.objective import Design
from streamlabel.classifier.penalty import make_penalty
from streamlabel.stats.label_gram import centred_cross
from streamlabel.structure.represent import represent

BEGUN = time.perf_counter()
ROWS: list[str] = []
BETA, LAM = 1.0, 0.003


def make_set(n_rows: int, n_features: int, n_labels: int, values: float, labels: float, seed: int = 0) -> Any:
    """Rows (n, d) of unit length and labels (n, m): Zipf's law for both; a label brings eight words of its own."""
    rng = np.random.default_rng(seed)

    def zipf(size: int, n: int, flat: float) -> Any:
        weights = 1.0 / np.arange(flat, n + flat)
        return np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(size)).clip(0, n - 1)

    n_given = int(n_rows * labels)
    Y = sparse.csr_array(
        (np.ones(n_given), (rng.integers(0, n_rows, n_given), zipf(n_given, n_labels, 20.0))), (n_rows, n_labels)
    )
    Y.sum_duplicates()
    Y.data[:] = 1.0
    own = sparse.csr_array(
        (np.ones(8 * n_labels), (np.repeat(np.arange(n_labels), 8), rng.integers(0, n_features, 8 * n_labels))),
        (n_labels, n_features),
    )
    told = Y @ own
    n_noise = max(int(n_rows * values) - told.nnz, n_rows)
    noise = sparse.csr_array(
        (rng.random(n_noise), (rng.integers(0, n_rows, n_noise), zipf(n_noise, n_features, 50.0))), told.shape
    )
    X = sparse.csr_array(told.multiply(sparse.csr_array(told != 0)) + noise)
    X.sum_duplicates()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sparse.csr_array(sparse.diags_array(1.0 / np.maximum(lengths, 1e-9)) @ X)
    X.sort_indices()
    return X, Y.astype(np.int8)


def make_new(Y: Any, n_new: int, seed: int = 1) -> Any:
    """New labels (n, k), each most of two old ones."""
    rng = np.random.default_rng(seed)
    n_past = Y.shape[1]
    pairs = rng.integers(0, n_past // 2, 2 * n_new)
    mixing = sparse.csr_array((np.ones(2 * n_new), (pairs, np.repeat(np.arange(n_new), 2))), (n_past, n_new))
    found = sparse.coo_array(Y.astype(np.float64) @ mixing)
    kept = rng.random(found.nnz) < 0.7
    rows = np.concatenate((found.coords[0][kept], rng.integers(0, Y.shape[0], n_new)))
    columns = np.concatenate((found.coords[1][kept], np.arange(n_new)))
    result = sparse.csr_array((np.ones(len(rows)), (rows, columns)), found.shape)
    result.sum_duplicates()
    result.data[:] = 1.0
    return result.astype(np.int8)


def row(
    what: str, seconds: float, work: float = 0.0, unit: str = "TFLOP/s", ceiling: float = 0.0, note: str = ""
) -> None:
    """One line of the table: work in floating point operations or bytes."""
    rate = work / seconds / 1e12 if work else 0.0
    line = f"{what:58} {seconds:10.4f} s"
    line += f" {rate:8.2f} {unit:7}" if work else " " * 17
    line += f" {ceiling:7.1f} {100 * rate / ceiling:5.0f} %" if work and ceiling else " " * 16
    ROWS.append(f"{line}  {note}".rstrip())
    print(ROWS[-1], flush=True)


def difference(one: Any, other: Any) -> float:
    return float(np.linalg.norm(one - other) / max(float(np.linalg.norm(other)), 1e-300))


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self.quick = options.quick
        self.limit = options.limit
        big = not options.quick
        self.eurlex = (45_000, 5_000, 4_271, 150.0, 5.07) if big else (2_000, 400, 150, 30.0, 4.0)
        self.wide = (14_146, 101_938, 30_938, 673.0, 18.6) if big else (500, 4_000, 300, 60.0, 5.0)
        self.n_new = 10_000 if big else 200

    def section(self, name: str, work: Callable[[], None]) -> bool:
        """Run a part; an error is printed and the next one goes on."""
        if time.perf_counter() - BEGUN > self.limit:
            print(f"-- {name}: left out, {self.limit} s are over", flush=True)
            return False
        print(f"-- {name} ({time.perf_counter() - BEGUN:.0f} s)", flush=True)
        try:
            work()
            return True
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()
            return False


class Reference(Bench):
    """The CPU of this machine, on some of the labels."""

    def main(self) -> None:
        self.section("EURLEX57K-sized, CPU", self.fit)
        self.section("as wide as Wiki10-31K, CPU", self.fit_wide)

    def timed(self, what: str, work: Callable[[], Any], times: float = 1.0) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        found = work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(
            f"{what:58} {wall:9.1f} s {cpu:9.1f} CPU s; all {wall * times:9.0f} s {cpu * times:9.0f} CPU s", flush=True
        )
        return found

    def fit(self) -> None:
        X, Y = make_set(*self.eurlex)
        model = StreamingLabelClassifier(lam=LAM, metric=None, loss="squared")
        self.timed("fit", lambda: model.fit(X, Y))
        new = make_new(Y, self.n_new)[:, : self.n_new // 25]
        model = StreamingLabelClassifier(lam=LAM, metric=None, loss="squared", beta=model.beta_).fit(X, Y)
        self.timed("1/25 of the new labels", lambda: model.add_labels(X, new), 25.0)
        self.timed("top 5 of 1/10 of the rows", lambda: model.predict_top_k(X[::10], 5), 10.0)
        few = np.arange(0, Y.shape[1], 50)
        solver = StreamingLabelClassifier(loss="logistic", beta=BETA)
        self.timed("logistic fit, 1/50 of the labels (twice: unseen scores)", lambda: solver.fit(X, Y[:, few]), 50.0)

    def fit_wide(self) -> None:
        X, Y = make_set(*self.wide)
        few = np.arange(0, Y.shape[1], 40)
        model = StreamingLabelClassifier(loss="squared", beta=BETA)
        self.timed("fit, 1/40 of the labels (not linear in them)", lambda: model.fit(X, Y[:, few]))


class Device(Bench):
    """The device, each operation and then all together."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        import torch

        self.torch = torch
        self.name = options.device
        self.gpu = options.device != "cpu"
        self.ceilings = {"float64": 0.0, "float32": 0.0, "copy": 0.0}
        self.times: dict[str, list[float]] = defaultdict(list)
        self.repeats = 3

    def main(self) -> None:
        torch = self.torch
        from streamlabel.scale.torch_device import TorchDevice

        what = torch.cuda.get_device_name(0) if self.gpu else f"CPU, {torch.get_num_threads()} threads"
        print(f"{what}; torch {torch.__version__}, numpy {np.__version__}, {os.cpu_count()} cores", flush=True)
        inner = TorchDevice.run

        def run(device: Any, operation: str, *arguments: Any) -> Any:
            self.sync()
            begun = time.perf_counter()
            found = inner(device, operation, *arguments)
            self.sync()
            if found is not None:
                self.times[operation].append(time.perf_counter() - begun)
            return found

        TorchDevice.run = run  # type: ignore[method-assign]
        self.section("ceilings", self.measure_ceilings)
        if not self.section("making the sets", self.make):
            return
        self.section("ridge, EURLEX57K-sized", self.ridge)
        self.section("lassos of new labels", self.lassos)
        self.section("logistic, all labels", self.logistic)
        self.section("conjugate gradients", self.conjugate)
        self.section("fit, new labels, top 5: the classifier", self.classifier)
        self.section("as wide as Wiki10-31K", self.wide_ridge)
        self.section("trials", self.trials)

    def device(self, dtype: str = "float64") -> Any:
        from streamlabel.scale.torch_device import TorchDevice

        return TorchDevice("cuda" if self.gpu else "cpu", dtype, least_work=0.0 if self.quick else None)

    def sync(self) -> None:
        if self.gpu:
            self.torch.cuda.synchronize()

    def time(self, work: Callable[[], Any], repeats: int | None = None) -> tuple[float, Any]:
        """The median of some runs after one to warm up, and the last result."""
        found = work()
        seconds = []
        for _ in range(self.repeats if repeats is None else repeats):
            found = None
            self.sync()
            begun = time.perf_counter()
            found = work()
            self.sync()
            seconds.append(time.perf_counter() - begun)
        return float(np.median(seconds)), found

    def measure_ceilings(self) -> None:
        torch, size = self.torch, 8192 if self.gpu else 1024
        place = "cuda" if self.gpu else "cpu"
        for name in ("float64", "float32"):
            A = torch.randn((size, size), dtype=getattr(torch, name), device=place)
            seconds, _ = self.time(lambda A=A: A @ A, 5)
            self.ceilings[name] = 2.0 * size**3 / seconds / 1e12
            row(f"matrix product of {size}, {name}", seconds, 2.0 * size**3)
        values = torch.randn(1 << (29 if self.gpu else 24), dtype=torch.float64, device=place)
        other = torch.empty_like(values)
        seconds, _ = self.time(lambda: other.copy_(values), 5)
        self.ceilings["copy"] = 16.0 * len(values) / seconds / 1e12
        row("copy", seconds, 16.0 * len(values), "TB/s")

    def make(self) -> None:
        self.X, self.Y = make_set(*self.eurlex)
        self.new = make_new(self.Y, self.n_new)
        print(
            f"{self.X.shape}, {self.X.nnz:,} values, {self.Y.shape[1]:,} labels, {self.new.shape[1]:,} new", flush=True
        )

    def ridge(self) -> None:
        from streamlabel.scale import torch_ridge
        from streamlabel.scale.torch_ridge import TorchRidge, Triangle

        torch, (n, d), m = self.torch, self.X.shape, self.Y.shape[1]
        found = {}
        for name in ("float64", "float32"):
            device, ceiling = self.device(name), self.ceilings[name]
            seconds, rows = self.time(lambda device=device: device._kept.clear() or device.rows(self.X), 2)
            row(f"{name}: {self.X.nnz:,} values to the device", seconds, 16.0 * self.X.nnz, "TB/s")
            mean = device.put(np.asarray(self.X.mean(axis=0)).ravel())
            dtype = device.dtype
            seconds, gram = self.time(lambda rows=rows, mean=mean, dtype=dtype: rows.gram(mean, dtype))
            row(f"{name}: Gram of {n:,} x {d:,} from sparse rows", seconds, 1.0 * n * d * d, "TFLOP/s", ceiling)
            gram.diagonal().add_(BETA)
            seconds, triangle = self.time(lambda gram=gram: Triangle(gram.clone()))
            row(f"{name}: Cholesky factor of {d:,}", seconds, d**3 / 3.0, "TFLOP/s", ceiling)
            right = torch.randn((d, m), dtype=dtype, device=gram.device)
            seconds, answer = self.time(lambda triangle=triangle, right=right: triangle.solve(right), 5)
            row(f"{name}: solve of {m:,} labels", seconds, 2.0 * d * d * m, "TFLOP/s", ceiling)
            seconds, other = self.time(
                lambda right=right, triangle=triangle: torch.cholesky_solve(right, triangle.lower)
            )
            note = f"other answer by {float((answer - other).norm() / other.norm()):.1e}"
            row(f"{name}: the same by torch.cholesky_solve", seconds, 2.0 * d * d * m, "TFLOP/s", ceiling, note)
            for corner in (256, 1024):
                torch_ridge._CORNER, usual = corner, torch_ridge._CORNER
                triangle = Triangle(gram.clone())
                torch_ridge._CORNER = usual
                seconds, _ = self.time(lambda triangle=triangle, right=right: triangle.solve(right), 5)
                row(f"{name}: the same with corners of {corner}", seconds, 2.0 * d * d * m, "TFLOP/s", ceiling)
            if name == "float64":
                whole = gram.tril() + gram.tril(-1).T
                seconds, _ = self.time(lambda whole=whole: torch.linalg.eigh(whole), 2)
                row(f"{name}: eigenvectors of {d:,}", seconds)
            goals = device.put(self.Y)
            seconds, _ = self.time(lambda rows=rows, goals=goals: rows.transposed_times(goals))
            row(f"float64: X'Y, {n:,} x {m:,}", seconds, 2.0 * n * d * m, "TFLOP/s", self.ceilings["float64"])
            del goals, right, answer, other
            seconds, prepared = self.time(lambda device=device: TorchRidge(device, self.X, BETA, True), 2)
            row(f"{name}: ridge factored, all told", seconds)
            seconds, found[name] = self.time(lambda prepared=prepared: prepared.solve(self.Y), 2)
            row(f"{name}: {m:,} classifiers from labels, to the host", seconds, 2.0 * d * d * m)
            seconds, _ = self.time(lambda prepared=prepared: prepared.leverages(np.arange(min(1000, n))), 2)
            row(f"{name}: hat diagonal of 1,000 rows", seconds)
        print(f"classifiers, float32 against float64: {difference(found['float32'], found['float64']):.1e}", flush=True)
        some = np.arange(0, m, max(m // 50, 1))
        design = Design(self.X)
        V = found["float64"][:, some]
        right = design.cross(self.Y[:, some].astype(np.float64))
        residual = right - design.normal_product(V) - BETA * V
        print(
            f"float64: relative residual on the CPU {np.linalg.norm(residual) / np.linalg.norm(right):.1e}", flush=True
        )

    def lassos(self) -> None:
        past, new = self.Y.astype(np.float64), self.new.astype(np.float64)
        n_rows = past.shape[0]
        begun = time.perf_counter()
        gram, cross = centred_cross(past, past), centred_cross(past, new)
        counts = np.asarray(new.sum(axis=0)).ravel()
        energies = counts - counts**2 / n_rows
        row(f"products of {past.shape[1]:,} and {new.shape[1]:,} labels on the host", time.perf_counter() - begun)
        from streamlabel.stats.accelerator import accelerating

        lam = LAM * n_rows
        with accelerating(self.device()), warnings.catch_warnings():
            warnings.simplefilter("error")
            self.times.clear()
            seconds, found = self.time(lambda: represent(gram, cross, energies, lam), 1)
        gaps = [report.violation for report in found.reports]
        left = sum(report.note != "on the device" for report in found.reports)
        note = f"gap {max(gaps):.1e}, {found.codes.nnz / len(gaps):.1f} labels a code, {left} finished by the CPU"
        row(f"{len(gaps):,} lassos of {len(gram):,} labels", seconds, note=note)
        row("   of it the device", self.times["lasso"][-1])
        few = np.arange(0, len(gaps), max(len(gaps) // 200, 1))
        begun = time.perf_counter()
        same = represent(gram, cross[:, few], energies[few], lam)
        spent = (time.perf_counter() - begun) * len(gaps) / len(few)
        row(f"the same on one core of this machine ({len(few)} of them, scaled)", spent,
            note=f"codes differ by {abs(same.codes - found.codes[:, few]).max():.1e}")  # fmt: skip

    def logistic(self) -> None:
        n, d = self.X.shape
        m = self.Y.shape[1]
        squares = Design(self.X).gram_diagonal()
        found, penalty = {}, make_penalty(np.zeros((d, m)), None, BETA)
        for name in ("float64", "float32"):
            device = self.device(name)
            given = (self.X, self.Y.astype(np.float64), "logistic", penalty, True, None, squares, None, 1e-3, 100)
            seconds, result = self.time(lambda device=device, given=given: device.run("newton", *given), 1)
            # an inner step is two products with the rows; an outer one about four more
            work = 4.0 * n * d * (result.n_inner + 2.0 * result.n_outer * m)
            note = f"{result.n_inner / m:.0f} inner steps a label, {result.n_outer} outer"
            row(f"{name}: logistic, {m:,} labels, all rows", seconds, work, "TFLOP/s", self.ceilings[name], note)
            found[name] = result.weights
        print(f"logistic, float32 against float64: {difference(found['float32'], found['float64']):.1e}", flush=True)

    def conjugate(self) -> None:
        d, m = self.X.shape[1], self.Y.shape[1]
        design, penalty = Design(self.X), make_penalty(np.zeros((d, m)), None, BETA)
        given = (design, self.Y.astype(np.float64), penalty, 1e-8, 1000, None)
        seconds, (weights, steps) = self.time(lambda: self.device().run("conjugate_gradient", *given), 1)
        right = design.cross(self.Y[:, :20].astype(np.float64))
        residual = right - design.normal_product(weights[:, :20]) - BETA * weights[:, :20]
        note = f"{steps} steps, residual {np.linalg.norm(residual) / np.linalg.norm(right):.1e}"
        row(f"float64: conjugate gradients, {m:,} labels to 1e-8", seconds, note=note)

    def classifier(self) -> None:
        from streamlabel.scale.torch_device import on_device

        options: dict[str, Any] = {"least_work": 0.0} if self.quick else {}
        names = {}
        for name in ("float64", "float32"):
            with on_device("cuda" if self.gpu else "cpu", name, **options):
                model = StreamingLabelClassifier(lam=LAM, metric=None, loss="squared")
                seconds, _ = self.time(lambda model=model: self.times.clear() or model.fit(self.X, self.Y), 1)
                row(f"{name}: fit, whole", seconds, note=self.shares())
                names[name] = model.coef_, model.thresholds_
                if name == "float64":
                    model = StreamingLabelClassifier(lam=LAM, metric=None, loss="squared", beta=model.beta_)
                    model.fit(self.X, self.Y)
                    self.times.clear()
                    begun = time.perf_counter()
                    model.add_labels(self.X, self.new)
                    row(f"{name}: {self.n_new:,} new labels, whole", time.perf_counter() - begun, note=self.shares())
                m = len(model.label_names_)
                seconds, best = self.time(lambda model=model: self.times.clear() or model.predict_top_k(self.X, 5), 2)
                n, d = self.X.shape
                what, ceiling = f"{name}: top 5 of {m:,} labels, {n:,} rows", self.ceilings[name]
                row(what, seconds, 2.0 * n * d * m, "TFLOP/s", ceiling, self.shares())
            few = self.X[:200]
            again = model.predict_top_k(few, 5)
            print(f"{name}: top 5 as on the CPU: {100 * np.mean(again[0] == best[0][:200]):.1f} %, scores differ by "
                  f"{np.abs(again[1] - best[1][:200]).max():.1e}", flush=True)  # fmt: skip
        print(f"fit, float32 against float64: classifiers {difference(names['float32'][0], names['float64'][0]):.1e}, "
              f"thresholds {np.abs(names['float32'][1] - names['float64'][1]).max():.1e}", flush=True)  # fmt: skip

    def shares(self) -> str:
        return "device: " + ", ".join(f"{name} {sum(times):.3f}" for name, times in self.times.items())

    def wide_ridge(self) -> None:
        from streamlabel.scale.torch_ridge import Triangle

        torch = self.torch
        X, Y = make_set(*self.wide)
        (n, d), m = X.shape, Y.shape[1]
        print(f"{X.shape}, {X.nnz:,} values, {m:,} labels", flush=True)
        device = self.device()
        rows, mean = device.rows(X), device.put(np.asarray(X.mean(axis=0)).ravel())
        seconds, kernel = self.time(lambda: rows.kernel(mean, torch.float64), 2)
        traffic = 8.0 * X.nnz * n
        row(
            f"kernel of {n:,} rows by sparse products",
            seconds,
            traffic,
            "TB/s",
            self.ceilings["copy"],
            "bytes gathered",
        )
        single = rows.kernel(mean, torch.float32)
        kernel.diagonal().add_(BETA)
        single.diagonal().add_(BETA)
        seconds, triangle = self.time(lambda: Triangle(kernel), 2)
        row(f"float64: Cholesky factor of {n:,}", seconds, n**3 / 3.0, "TFLOP/s", self.ceilings["float64"])
        goals = device.put(Y)
        goals -= goals.mean(0)
        seconds, duals = self.time(lambda goals=goals: triangle.solve(goals), 2)
        row(f"float64: solve of {m:,} labels", seconds, 2.0 * n * n * m, "TFLOP/s", self.ceilings["float64"])
        narrow = Triangle(single)
        seconds, rough = self.time(lambda goals=goals, narrow=narrow: narrow.solve(goals.float()), 2)
        note = f"float32 against float64 {float((rough - duals).norm() / duals.norm()):.1e}"
        row(f"float32: solve of {m:,} labels", seconds, 2.0 * n * n * m, "TFLOP/s", self.ceilings["float32"], note)
        del rough, narrow, single
        seconds, weights = self.time(lambda duals=duals: rows.transposed_times(duals), 1)
        row(
            f"classifiers X'A ({d:,} x {m:,})",
            seconds,
            8.0 * X.nnz * m,
            "TB/s",
            self.ceilings["copy"],
            "bytes gathered",
        )
        check = weights[:, :10].cpu().numpy()
        check -= np.outer(np.asarray(X.mean(axis=0)).ravel(), duals[:, :10].sum(0).cpu().numpy())
        del weights, duals, goals
        design = Design(X)
        right = design.cross(Y[:, :10].astype(np.float64))
        residual = right - design.normal_product(check) - BETA * check
        print(f"wide: relative residual on the CPU {np.linalg.norm(residual) / np.linalg.norm(right):.1e}", flush=True)
        device._kept.clear()
        few = Y[:, : max(m // 8, 1)]
        self.times.clear()
        from streamlabel.scale.torch_device import on_device

        with on_device("cuda" if self.gpu else "cpu", **({"least_work": 0.0} if self.quick else {})):
            begun = time.perf_counter()
            StreamingLabelClassifier(loss="squared", beta=BETA).fit(X, few)
        row(f"fit, whole, {few.shape[1]:,} of the labels", time.perf_counter() - begun, note=self.shares())

    def trials(self) -> None:
        from streamlabel.scale.torch_device import on_device

        rows = np.arange(0, self.X.shape[0], max(self.X.shape[0] // 2_000, 1))
        new = self.new[:, np.argsort(-np.asarray(self.new.sum(axis=0)).ravel())[:20]]
        for place in ("device", "CPU"):
            options: dict[str, Any] = {"least_work": 0.0} if self.quick else {}
            with on_device("cuda" if self.gpu else "cpu", **options):
                model = StreamingLabelClassifier(beta="auto").fit(self.X, self.Y)
            self.times.clear()
            begun = time.perf_counter()
            if place == "CPU":
                model.add_labels(self.X, new, annotated=rows)
            else:
                with on_device("cuda" if self.gpu else "cpu", **options):
                    model.add_labels(self.X, new, annotated=rows)
            row(
                f"20 labels on {len(rows):,} rows with trials, {place}", time.perf_counter() - begun, note=self.shares()
            )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--quick", action="store_true", help="small shapes")
    parser.add_argument("--reference", action="store_true", help="the CPU without PyTorch, on some of the labels")
    parser.add_argument("--limit", type=float, default=450.0, help="seconds after which no part begins (default: 450)")
    options = parser.parse_args(argv)
    (Reference if options.reference else Device)(options).main()
    print(f"\n{time.perf_counter() - BEGUN:.0f} s in all\n" + "\n".join(ROWS), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
