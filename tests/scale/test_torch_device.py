"""One contract for PyTorch on the CPU (where it is installed) and on a GPU (where there is one): what numpy says."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.classifier import iterations
from streamlabel.classifier.coordinates import minimise
from streamlabel.classifier.iterations import IteratedRows
from streamlabel.classifier.objective import AnchoredObjective, Design
from streamlabel.classifier.ridge import make_ridge
from streamlabel.classifier.solve import solve
from streamlabel.data.synthetic import make_twin
from streamlabel.errors import DataError, DeviceWarning
from streamlabel.metrics.topk import top_k
from streamlabel.stats.accelerator import accelerated, accelerating
from streamlabel.stats.label_gram import centred_cross, signed_label_gram
from streamlabel.stats.sums import Stats
from streamlabel.streaming.calibration import best_f1_thresholds, fit_sigmoids
from streamlabel.streaming.from_stats import classifier_from_stats
from streamlabel.structure.represent import represent

torch = pytest.importorskip("torch", reason="PyTorch is not installed (the extra gpu)")

from streamlabel.scale.torch_device import Rows, TorchDevice, on_device  # noqa: E402
from streamlabel.scale.torch_ridge import Triangle  # noqa: E402

NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")
PLACES = ["cpu", pytest.param("cuda", marks=NO_GPU)]
CLOSE = {"float64": 1e-10, "float32": 1e-4}  # in float32 a factor is mended to a relative residual of 1e-4


@pytest.fixture(params=PLACES)
def place(request):
    """A device; on the CPU one thread, for two that wait for shared cores take many times longer."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield request.param
    torch.set_num_threads(n_threads)


def of_all_sizes(place, dtype="float64", **options):
    return TorchDevice(place, dtype, least_work=0.0, **options)


def made(n_rows=300, n_features=120, n_labels=30, seed=0):
    twin = make_twin(n_rows, n_features, n_labels, 20.0, 3.0, random_state=seed)
    return twin.X.astype(np.float64), twin.Y


def assert_close(found, expected, share):
    """To a share of the length of what is expected."""
    assert np.linalg.norm(found - expected) <= share * max(np.linalg.norm(expected), 1e-300)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("shape", [(300, 120), (100, 260)])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_ridge(place, dtype, centre, shape, kind):
    X, Y = made(*shape)
    X = X if kind == "sparse" else X.toarray()
    ridge = make_ridge(X, 0.7, centre=centre)
    with accelerating(of_all_sizes(place, dtype)):
        found = make_ridge(X, 0.7, centre=centre)
    assert type(found).__name__ == "TorchRidge"
    anchor = np.random.default_rng(1).normal(size=(shape[1], Y.shape[1]))
    share = CLOSE[dtype]
    assert_close(found.solve(Y), ridge.solve(Y), share)
    assert_close(found.solve(Y.toarray() - 0.3), ridge.solve(Y.toarray() - 0.3), share)
    one, other = found.compare(Y, anchor), ridge.compare(Y, anchor)
    for name in ("alone", "toward", "residual_alone", "residual_toward"):
        assert_close(getattr(one, name), getattr(other, name), share)
    assert_close(found.leverages(), ridge.leverages(), share)
    assert_close(found.leverages(np.array([5, 2])), ridge.leverages(np.array([5, 2])), share)
    assert found.freedom == pytest.approx(ridge.freedom, rel=share)
    sizes = np.arange(5)
    assert_close(found.hat.most_between(sizes), ridge.hat.most_between(sizes), share)
    residuals = Y.toarray() * 1.0
    assert_close(found.leave_one_out(residuals, ridge.solve(Y)), ridge.leave_one_out(residuals, ridge.solve(Y)), share)


@pytest.mark.parametrize("order", [1, 511, 512, 513, 1800])
def test_solves_by_parts_of_the_factor(place, order):
    rng = np.random.default_rng(6)
    A, R = rng.normal(size=(order, order + 5)), rng.normal(size=(order, 3))
    matrix, device = A @ A.T + order * np.eye(order), of_all_sizes(place)
    triangle = Triangle(device.put(np.tril(matrix)))
    np.testing.assert_allclose(triangle.solve(device.put(R)).cpu(), np.linalg.solve(matrix, R), atol=1e-12)
    half = np.linalg.solve(np.linalg.cholesky(matrix), R)
    np.testing.assert_allclose(triangle.half(device.put(R)).cpu(), half, atol=1e-12)


def test_sparse_products_in_blocks(place, monkeypatch):
    monkeypatch.setattr("streamlabel.scale.torch_device._MOST_CELLS", 300)
    X = sparse.random_array((40, 90), density=0.005, format="csr", rng=np.random.default_rng(7))
    device, Z = of_all_sizes(place), np.random.default_rng(8).normal(size=(90, 11))
    np.testing.assert_allclose(Rows(device, X, torch.float64).times(device.put(Z)).cpu(), X @ Z, atol=1e-14)


@pytest.mark.parametrize("values", [0.2, 0.005])
def test_rows_sparse_or_dense_give_the_same_products(place, values):
    rng, device = np.random.default_rng(0), of_all_sizes(place)
    X = sparse.random_array((90, 140), density=values, format="csr", rng=rng)
    X = sparse.vstack((X, sparse.csr_array((3, 140))), format="csr")
    rows, dense, mean = Rows(device, X, torch.float64), X.toarray(), X.mean(axis=0)
    Z, R, shift = rng.normal(size=(140, 4)), rng.normal(size=(93, 4)), device.put(X.mean(axis=0))
    np.testing.assert_allclose(rows.times(device.put(Z)).cpu(), dense @ Z, atol=1e-12)
    np.testing.assert_allclose(rows.transposed_times(device.put(R)).cpu(), dense.T @ R, atol=1e-12)
    centred = dense - mean
    np.testing.assert_allclose(np.tril(rows.gram(shift, torch.float64).cpu()), np.tril(centred.T @ centred), atol=1e-12)
    kernel = np.tril(rows.kernel(shift, torch.float64).cpu())
    np.testing.assert_allclose(kernel, np.tril(centred @ centred.T), atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.parametrize("centre", [True, False])
def test_newton(place, loss, centre):
    X, Y = made()
    anchor = 0.1 * np.random.default_rng(1).normal(size=(X.shape[1], Y.shape[1]))
    options = {"beta": 0.5, "loss": loss, "fit_intercept": centre, "tolerance": 1e-10, "solver": "newton"}
    weights, intercept, _ = solve(X, Y, anchor, **options)
    with accelerating(of_all_sizes(place)):
        found, offset, report = solve(X, Y, anchor, **options)
        again, _, _ = solve(X, Y, anchor, **options, start=(weights, intercept))
    assert "on the device" in report.note
    assert report.converged
    assert_close(found, weights, 1e-8)
    assert_close(offset, intercept, 1e-8)
    assert_close(again, weights, 1e-8)


def test_newton_with_answers_left_out(place):
    X, Y = made()
    rng = np.random.default_rng(2)
    answers, squares = Y.toarray().astype(float), Design(X).gram_diagonal()
    known = (rng.random(answers.shape) < 0.8).astype(float)
    given = (X, squares, answers, 0.5, "logistic", None, None, known, 1e-10)
    expected = minimise(*given)
    with accelerating(of_all_sizes(place)):
        found = minimise(*given)
    assert_close(found[0], expected[0], 1e-8)


def test_logistic_arrivals_on_sparse_rows_reach_the_device(place, monkeypatch):
    """Answers and refits without some rows, which begin at the answers."""
    X, Y = made()
    answers, anchor = Y.toarray()[:, :4] * 1.0, np.full((120, 4), 0.01)
    monkeypatch.setattr(iterations, "_FOLD_STEPS", 20)
    monkeypatch.setattr(iterations, "_FOLD_TOLERANCE", 1e-8)
    given = (answers, anchor, 0.5, "logistic", 1e-8)
    expected, device, asked = IteratedRows(X).learn(*given), of_all_sizes(place), []
    run = device.run
    monkeypatch.setattr(device, "run", lambda *given: asked.append(run(*given)) or asked[-1])
    with accelerating(device):
        found = IteratedRows(X).learn(*given)
        beside = IteratedRows(X, np.ones((120, 1)), 0.5)
        beside.learn(answers, beside.point(anchor), *given[2:])
    assert [one is None for one in asked] == [False, False, True, True]
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 1e-6)


def test_newton_in_single_precision_meets_its_tolerance(place):
    X, Y = made()
    with accelerating(of_all_sizes(place, "float32")):
        V, b, _ = solve(X, Y, beta=0.5, loss="logistic", tolerance=1e-3)
        closer = solve(X, Y, beta=0.5, loss="logistic", tolerance=1e-10)[0]  # beyond it: in double precision
    assert_close(closer, solve(X, Y, beta=0.5, loss="logistic", tolerance=1e-10)[0], 1e-8)
    from streamlabel.classifier.losses import get_loss
    from streamlabel.classifier.penalty import make_penalty

    objective = AnchoredObjective(X, Y.toarray() * 1.0, get_loss("logistic"), make_penalty(0.0 * V, None, 0.5))
    slope, slope_b = objective.gradient(V, b)
    lengths = np.hypot(np.linalg.norm(slope, axis=0), slope_b)
    assert (lengths <= 1.01e-3 * objective.gradient_scale()).all()


@pytest.mark.parametrize("coupled", [False, True])
def test_conjugate_gradients_find_the_ridge(place, coupled):
    X, Y = made()
    rng = np.random.default_rng(3)
    anchor = rng.normal(size=(X.shape[1], Y.shape[1]))
    coupling = 0.2 * (rng.random((30, 30)) < 0.1) * (1 - np.eye(30)) if coupled else None
    expected, intercept, _ = solve(X, Y, anchor, coupling, beta=0.5, solver="spectral")
    with accelerating(of_all_sizes(place)):
        found, offset, _ = solve(X, Y, anchor, coupling, beta=0.5, solver="conjugate_gradient", tolerance=1e-12)
    assert_close(found, expected, 1e-10)
    assert_close(offset, intercept, 1e-10)


@pytest.mark.parametrize("share", [0.5, 0.05, 0.003])
@pytest.mark.parametrize("coding", ["centred", "signed"])
def test_lasso(place, share, coding):
    _, Y = made(400, 100, 60)
    gram = centred_cross(Y, Y) if coding == "centred" else signed_label_gram(Y)
    lam = share * float(np.abs(gram).max())
    own = np.arange(60)
    expected = represent(gram, gram, gram.diagonal(), lam, own=own, tol=1e-9)
    with accelerating(of_all_sizes(place)):
        found = represent(gram, gram, gram.diagonal(), lam, own=own, tol=1e-9)
        again = represent(gram, gram, gram.diagonal(), 0.9 * lam, own=own, tol=1e-9, start=found.codes)
    assert all(report.converged for report in (*found.reports, *again.reports))
    assert sum(report.note == "on the device" for report in found.reports) >= 50
    np.testing.assert_allclose(found.codes.toarray(), expected.codes.toarray(), atol=1e-6)
    assert not found.codes.diagonal().any()
    closer = represent(gram, gram, gram.diagonal(), 0.9 * lam, own=own, tol=1e-9)
    np.testing.assert_allclose(again.codes.toarray(), closer.codes.toarray(), atol=1e-6)


def test_lasso_of_equal_and_empty_labels(place):
    """Equal labels may share their weight in any way; the objective is what is unique."""
    _, Y = made(400, 100, 20)
    Y = sparse.csr_array(sparse.hstack((Y, Y[:, :5], sparse.csr_array((400, 2)))))
    gram, new = centred_cross(Y, Y), centred_cross(Y, Y[:, :8])
    energies = gram.diagonal()[:8]
    with accelerating(of_all_sizes(place)), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = represent(gram, new, energies, 1.0)
    expected = represent(gram, new, energies, 1.0)
    assert max(report.violation for report in found.reports) <= 1e-6
    scores, wanted = (Y.toarray() @ one.codes.toarray() for one in (found, expected))
    np.testing.assert_allclose(scores - scores.mean(axis=0), wanted - wanted.mean(axis=0), atol=1e-3)


def test_thresholds_and_probabilities(place):
    rng = np.random.default_rng(4)
    answers = (rng.random((200, 40)) < 0.1).astype(float)
    answers[:, 0] = 0.0
    scores = np.round(answers * 0.5 + rng.normal(size=answers.shape), 1)  # with ties
    expected, sigmoids = best_f1_thresholds(scores, answers), fit_sigmoids(scores, answers)
    with accelerating(of_all_sizes(place)):
        np.testing.assert_allclose(best_f1_thresholds(scores, answers), expected, rtol=1e-12)
        np.testing.assert_allclose(fit_sigmoids(scores, answers), sigmoids, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("values", [0.3, 0.004])
def test_top_k_with_ties(place, values):
    rng = np.random.default_rng(5)
    X = sparse.random_array((60, 300), density=values, format="csr", rng=rng)
    X.data[:] = 1.0
    coef = rng.integers(-2, 3, size=(50, 300)).astype(float)  # whole numbers: every product is exact
    model = StreamingLabelClassifier.from_coef(coef, np.zeros(50))
    scores = X @ coef.T
    for k in (1, 5, 50):
        with accelerating(of_all_sizes(place)):
            columns, found = model.predict_top_k(X, k)
        np.testing.assert_array_equal(columns, top_k(scores, k))
        np.testing.assert_array_equal(found, np.take_along_axis(scores, columns, axis=1))
    assert model.predict_top_k(X, 5)[0].shape == (60, 5)


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        ((200, 80), {}),
        ((400, 150), {"beta": 0.5, "lam": 0.01, "metric": None}),
        ((150, 400), {"beta": 0.5, "lam": 0.01, "metric": None}),
        ((400, 150), {"beta": 0.5, "fit_intercept": False}),
        ((150, 400), {"beta": 0.5, "lam": None, "metric": None, "loss": "logistic"}),
    ],
)
def test_the_model_is_the_one_of_the_cpu(place, shape, parameters):
    X, Y = made(*shape, 40)

    def learned():
        return StreamingLabelClassifier(**parameters).fit(X, Y[:, :-6]).add_labels(X, Y[:, -6:])

    expected = learned()
    with on_device(place, least_work=0.0):
        found = learned()
    assert_close(found.coef_, expected.coef_, 1e-10)
    np.testing.assert_allclose(found.structure_.toarray(), expected.structure_.toarray(), atol=1e-10)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-5)  # refits end at 1e-6
    np.testing.assert_array_equal(found.predict_top_k(X, 3)[0], expected.predict_top_k(X, 3)[0])
    for one in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):  # noqa: S301
        one.add_labels(X, Y[:, :1], ["again"])
        assert_close(one.coef_[:-1], expected.coef_, 1e-10)


def test_large_rows_take_the_road_of_one_factor(place, monkeypatch):
    monkeypatch.setattr("streamlabel.streaming.fit_plan.SPECTRAL_LIMIT", 50)
    X, Y = made()
    expected = StreamingLabelClassifier().fit(X, Y)
    with on_device(place, least_work=0.0):
        found = StreamingLabelClassifier().fit(X, Y)
    assert found.beta_ == pytest.approx(expected.beta_, rel=1e-10)
    assert_close(found.coef_, expected.coef_, 1e-4)  # the CPU's factor is in single precision


def test_sums(place):
    X, Y = made()
    sums = Stats.from_batch(X, Y)
    with on_device(place, least_work=0.0):
        found = classifier_from_stats(sums)
    assert_close(found.coef_, classifier_from_stats(sums).coef_, 1e-10)


def test_too_little_memory_is_said_once_and_the_cpu_goes_on(place):
    X, Y = made()
    expected = make_ridge(X, 0.7).solve(Y)
    device = of_all_sizes(place, memory=1000)
    with accelerating(device):
        with pytest.warns(DeviceWarning, match="ridge runs on the CPU: .* would take .* GiB") as said:
            make_ridge(X, 0.7)
        assert len(said) == 1
        assert_close(make_ridge(X, 0.7).solve(Y), expected, 1e-12)


def test_a_ridge_that_runs_out_of_memory_later(place):
    X, Y = made()
    device = of_all_sizes(place)
    with accelerating(device):
        ridge = make_ridge(X, 0.7)
    device._memory = 1000
    with pytest.warns(DeviceWarning, match="solve runs on the CPU"):
        found = ridge.solve(Y)
    assert_close(found, make_ridge(X, 0.7).solve(Y), 1e-12)


@pytest.mark.parametrize("asked", ["leverages", "hat", "leave_one_out"])
@pytest.mark.parametrize("shape", [(300, 120), (100, 260)])
def test_what_a_ridge_says_when_memory_runs_out(place, shape, asked):
    X, Y = made(*shape)
    expected, device = make_ridge(X, 0.7), of_all_sizes(place)
    with accelerating(device):
        ridge = make_ridge(X, 0.7)
    device._memory = 1000
    given = () if asked == "leverages" else (Y.toarray() * 1.0, expected.solve(Y))
    with pytest.warns(DeviceWarning, match="runs on the CPU: .* would take"):
        found = ridge.hat if asked == "hat" else getattr(ridge, asked)(*given)
    if asked == "hat":
        np.testing.assert_array_equal(found.most_between(np.arange(5)), expected.hat.most_between(np.arange(5)))
    else:
        np.testing.assert_allclose(found, getattr(expected, asked)(*given), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_rows_that_were_changed_in_place_are_those_of_now(place, kind):
    X, Y = made()
    X = X if kind == "sparse" else X.toarray()
    model = StreamingLabelClassifier(beta=1.0).fit(X.copy(), Y)
    with on_device(place, least_work=0.0):
        for loss in ("squared", "logistic"):
            StreamingLabelClassifier(beta=1.0, loss=loss).fit(X, Y)
        solve(X, Y, beta=0.5, solver="conjugate_gradient")
        model.predict_top_k(X, 3)
        gram = centred_cross(Y, Y)
        represent(gram, gram, gram.diagonal(), 0.1, own=np.arange(30))
        values = X if kind == "dense" else X.data
        values *= np.random.default_rng(0).normal(size=values.shape)
        gram *= 2.0
        fits = [StreamingLabelClassifier(beta=1.0, loss=loss).fit(X, Y).coef_ for loss in ("squared", "logistic")]
        found = (solve(X, Y, beta=0.5, solver="conjugate_gradient")[0], model.predict_top_k(X, 3)[1])
        codes = represent(gram, gram, gram.diagonal(), 0.1, own=np.arange(30)).codes.toarray()
    for loss, coef in zip(("squared", "logistic"), fits, strict=True):
        assert_close(coef, StreamingLabelClassifier(beta=1.0, loss=loss).fit(X, Y).coef_, 1e-2)
    assert_close(found[0], solve(X, Y, beta=0.5, solver="conjugate_gradient")[0], 1e-4)
    np.testing.assert_allclose(found[1], model.predict_top_k(X, 3)[1], rtol=1e-9)
    expected = represent(gram, gram, gram.diagonal(), 0.1, own=np.arange(30)).codes.toarray()
    np.testing.assert_allclose(codes, expected, atol=1e-3)


def test_what_the_best_labels_of_a_device_are_not(place):
    """Pruned classifiers stay sparse, on the CPU; a wrong k is said."""
    X, Y = made()
    pruned, whole = StreamingLabelClassifier(prune=9, beta=1.0).fit(X, Y), StreamingLabelClassifier(beta=1.0).fit(X, Y)
    with accelerating(of_all_sizes(place)):
        assert accelerated("top_k", X, pruned.state_.classifiers, 3) is None
        assert accelerated("top_k", X, whole.state_.classifiers, 31) is None
        for k in (True, 1.5, 0):
            with pytest.raises(DataError, match=f"k is {k!r}; it must be a whole number"):
                whole.predict_top_k(X, k)


def test_little_memory_means_blocks(place):
    X, Y = made()
    with accelerating(of_all_sizes(place, memory=700_000)):
        ridge = make_ridge(X, 0.7)
        found = ridge.solve(Y)
        assert len(list(ridge._at.columns(Y))) == 2
    assert_close(found, make_ridge(X, 0.7).solve(Y), 1e-10)
    expected = solve(X, Y, beta=0.5, loss="logistic", tolerance=1e-10)[0]
    with accelerating(of_all_sizes(place, memory=1_200_000)):  # 19 of 30 labels at once
        weights, _, report = solve(X, Y, beta=0.5, loss="logistic", tolerance=1e-10)
    assert "on the device" in report.note
    assert_close(weights, expected, 1e-8)


def test_small_work_stays_on_the_cpu(place):
    X, _Y = made()
    with accelerating(TorchDevice(place, least_work=1e12)):
        assert accelerated("ridge", X, 1.0, True, None) is None
        assert type(make_ridge(X, 1.0)).__name__ == "FeatureRidge"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu():
    with pytest.warns(DeviceWarning, match="sees no GPU here; everything runs on the CPU"):
        device = on_device().__enter__()
    assert device is None
    assert accelerated("eigh", np.eye(3)) is None
    with pytest.raises(DataError, match="device is 'cuda', and PyTorch"), on_device("cuda"):
        pass
    with pytest.raises(DataError, match="dtype is 'half'"):
        TorchDevice("cpu", "half")
