"""Words that a vectoriser has no column for: nothing is learned from them, and a person should know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from streamlabel.data.text import TextVectorizer

__all__ = ["unknown_words"]


def unknown_words(vectorizer: Any, texts: Iterable[str]) -> list[str]:
    """The words of the texts that are not in the vocabulary, those of the most texts first, else as they come.

    Pieces of words and runs of them are no words; a vectoriser without a vocabulary knows every word.
    """
    own = isinstance(vectorizer, TextVectorizer)
    known = frozenset(vectorizer.terms_) if own else getattr(vectorizer, "vocabulary_", None)
    if known is None or getattr(vectorizer, "analyzer", None) != "word":
        return []
    analyse = (vectorizer._counter if own else vectorizer).build_analyzer()
    n_texts: Counter[str] = Counter()
    for text in texts:
        words = dict.fromkeys(analyse(text))
        n_texts.update(word for word in words if word not in known and " " not in word)
    return [word for word, _ in n_texts.most_common()]
