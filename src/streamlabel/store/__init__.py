"""The growing model on disk: a directory that survives a crash, can be read while it grows, and can be undone.

Design. A directory holds a catalogue (SQLite: names, numbers, relations, history) and numbered files of fixed size
that are filled from the front and never rewritten: one row of float32 per label. A change writes its rows, flushes them
to the disk, and then commits one transaction of the catalogue; before the commit nothing of it can be seen, after it
all of it. One writer holds a lock; readers take none. A reader reads the catalogue in one transaction, maps the files,
and then needs neither again: it has one whole revision, whatever is written meanwhile.

A label has an id that is never used again, and versions (name, threshold, classifier), each from one revision to
another. Every change, a roll-back too, ends versions and begins others: that is the whole history.

==================  =====================================================================================
`format`            the number of the format and how to raise it, names of files, tables
`guard`             one writer at a time; what is checked before a directory of unknown origin is believed
`sqlite`            the catalogue: how it is opened, which journal, what its errors mean
`segments`          numbered files, and rows of classifiers in them, with checksums
`writer`            a change: rows, flush, commit
`reader`            one revision (`Snapshot`)
`classifiers`       its classifiers, multiplied in blocks that never move
`parts`             JSON and arrays beside the labels; `stored_rows`: the rows kept to go on learning
`append`            a model into a new directory; labels behind those that are there
`assemble`          a stored model as the estimator it was
`history`           labels, revisions, differences, sizes
`changes`           rename, retire, merge, threshold, roll back, learn again, vacuum
`doctor`            find damage (`damage`), explain it, repair what can be repaired
`model_store`       `ModelStore`, the door to all of it; `stored_model`: its reading half
`predict`           labels for many rows within a given memory
`sums_file`         sums over rows in a file
==================  =====================================================================================

Weights are rounded to float32 when they are stored, and products are made in float64; a choice of float64 rows would
double the size for digits that no score needs. Nothing is pickled, and nothing in a directory can run.
"""
