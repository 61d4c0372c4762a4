"""Write the small model of the current format that stays in the tests: ``python tests/store/make_format_model.py``.

It is made once for each format, by the release that raised it, and never again; `test_formats` opens all of them.
The scores beside it are a plain product of the rows with the weights rounded to float32.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.store.format import FORMAT


def main() -> int:
    folder = Path(__file__).with_name("formats") / str(FORMAT)
    if folder.exists():
        sys.stderr.write(f"{folder} is there; a format that was released is not written again\n")
        return 1
    rng = np.random.default_rng(FORMAT)
    X = rng.standard_normal((40, 6)).astype(np.float32).astype(np.float64)
    Y = (X[:, :4] + X[:, 2:6] > 0.4).astype(int)
    clf = StreamingLabelClassifier(beta=1.0).fit(X, Y[:, :2], ["café", "b"])
    folder.parent.mkdir(exist_ok=True)
    with ModelStore.create(folder, clf, actor="maker") as store:
        store.add_labels(None, Y[:, 2], ["late"])
        store.add_labels(X, Y[:, 3], ["few"], annotated=np.arange(20))
        store.rename("b", "β")
        store.put_part("notes", {"text": "ü"}, {"numbers": np.arange(5)})
        store.put_metric("late", "auc", 0.5, 40)
        store.retire("few")
        store.rollback(label="few")
        model = store.model()
        coef = model.coef_.astype(np.float32)
        scores = X @ coef.astype(np.float64).T + model.intercept_
    np.savetxt(folder / "expected.csv", scores, delimiter=",", fmt="%.17g")
    np.savetxt(folder / "rows.csv", X, delimiter=",", fmt="%.17g")
    for name in ("writer.lock", "catalogue.db-journal"):
        (folder / name).unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
