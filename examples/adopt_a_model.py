"""A trained scikit-learn model gets one more label, without being trained again.

Run it with ``python examples/adopt_a_model.py``. The texts come with the package; nothing is downloaded.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from streamlabel import StreamingLabelClassifier
from streamlabel.data.news import ARRIVALS_FROM, make_news_corpus
from streamlabel.data.streams import annotated_rows, dated_stream
from streamlabel.data.text import TextVectorizer, vectorise
from streamlabel.metrics.auc import macro_auc

NEWCOMER = "carbon border levy"
N_TRAIN, N_ANSWERS = 1000, 200


def main() -> None:
    corpus = vectorise(make_news_corpus(1500, random_state=0), TextVectorizer(max_features=800))
    stream = dated_stream(corpus, cutoff=ARRIVALS_FROM)
    rows = np.random.default_rng(0).permutation(corpus.n_rows)
    train, test = corpus.take_rows(rows[:N_TRAIN]), corpus.take_rows(rows[N_TRAIN:])
    past = train.take_labels(stream.past)

    theirs = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=10.0))
    theirs.fit(past.X, past.Y.astype(np.int32))
    model = StreamingLabelClassifier.from_estimator(theirs, label_names=past.label_names)
    print(f"Adopted {len(model.label_names_)} classifiers of {type(theirs).__name__}.")

    column = [corpus.label_names.index(NEWCOMER)]
    asked = annotated_rows(train.Y[:, column], N_ANSWERS, how="random", stratify=True, random_state=0).indices
    model.add_labels(train.X[asked], train.Y[asked][:, column], label_names=[NEWCOMER])
    report = model.reports_[-1]
    print(f"'{NEWCOMER}' has arrived with {report.n_rows} answers, {report.n_yes} of them yes.")

    scores = model.decision_function(test.X)
    same = np.array_equal(theirs.decision_function(test.X), scores[:, : past.n_labels])
    print(f"Scores of the adopted labels on {test.n_rows} other texts: {'bit-identical' if same else 'CHANGED'}.")
    print(f"Area under the ROC curve of the new label there: {macro_auc(test.Y[:, column], scores[:, [-1]]):.2f}")


if __name__ == "__main__":
    main()
