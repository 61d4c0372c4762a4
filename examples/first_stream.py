"""A label that arrives: fit the topics of 2018, add one that appears later, see what it was made of.

Run it with ``python examples/first_stream.py``. The texts come with the package; nothing is downloaded.
"""

from __future__ import annotations

import numpy as np

from streamlabel import StreamingLabelClassifier
from streamlabel.data.news import ARRIVALS_FROM, make_news_corpus, topic_parents
from streamlabel.data.streams import dated_stream
from streamlabel.data.text import TextVectorizer, vectorise

NEWCOMER = "avian influenza"
N_TRAIN = 600


def main() -> None:
    corpus = vectorise(make_news_corpus(900, random_state=0), TextVectorizer(max_features=800))
    stream = dated_stream(corpus, cutoff=ARRIVALS_FROM)
    rows = np.random.default_rng(0).permutation(corpus.n_rows)
    train, test = corpus.take_rows(np.sort(rows[:N_TRAIN])), corpus.take_rows(np.sort(rows[N_TRAIN:]))

    past = train.take_labels(stream.past)
    model = StreamingLabelClassifier().fit(past.X, past.Y, label_names=past.label_names)
    before = model.decision_function(test.X)
    print(f"{past.n_labels} topics are known; {len(stream.arriving)} more will appear.")

    answers = train.Y[:, [corpus.label_names.index(NEWCOMER)]]
    model.add_labels(train.X, answers, label_names=[NEWCOMER])
    code = ", ".join(f"{weight:+.2f} {name}" for name, weight in model.neighbours(NEWCOMER, k=3))
    print(f"'{NEWCOMER}' has arrived: {answers.sum()} of {N_TRAIN} texts have it.")
    print(f"  it was learned with the help of: {code or 'no other topic'}")
    print(f"  the corpus was written so that its parents are: {', '.join(topic_parents()[NEWCOMER])}")

    same = np.array_equal(before, model.decision_function(test.X)[:, : past.n_labels])
    print(f"Scores of the old topics on {test.n_rows} other texts: {'bit-identical' if same else 'CHANGED'}.")


if __name__ == "__main__":
    main()
