"""The growing model on disk: a directory that survives a crash, can be read while it grows, and can be undone.

Design. A directory holds a catalogue (SQLite: names, numbers, relations, history) and numbered files of fixed size
that are filled from the front and never rewritten: one row of float32 a label. A change writes its rows, flushes them
to the disk, and then commits one transaction of the catalogue; before the commit nothing of it can be seen, after it
all of it. One writer holds a lock; readers take none. A reader reads the catalogue in one transaction, maps the files,
and then needs neither again: it has one whole revision, whatever is written meanwhile.

A label has an id that is never used again, and versions (name, threshold, classifier), each from one revision to
another. Every change, a roll-back too, ends versions and begins others: that is the whole history.

==================  =====================================================================================
`format`            the number of the format and how to raise it, names of files, tables
`limits`            what is checked before a directory of unknown origin is believed
`files`             numbered files: create, map, flush
`segments`          rows of classifiers in such files, dense or sparse, with checksums
`catalogue`         SQLite: how it is opened, which journal, what its errors mean
`lock`, `writer`    the one writer; a change: rows, flush, commit
`reader`            one revision (`Snapshot`)
`classifiers`       its classifiers, multiplied in blocks that never move
`parts`             JSON and arrays beside the labels; `learning`: the rows kept to go on learning
`create`, `append`  a model into a new directory; labels behind those that are there
`assemble`          the estimator again
`records`           labels, history, differences, sizes
`changes`           rename, retire, threshold, roll back; `merge`, `vacuum`
`doctor`            find damage, explain it, repair what can be repaired
`model_store`       `ModelStore`, the door to all of it; `stored_model`: its reading half
`tagger_store`      `Tagger` with `save` and `open`, on a store
`annotated_tagger`  from the export of an annotation tool to a stored tagger
`batch_predict`     labels for many rows within a memory; `fast_top`: found in float32, scored in float64
==================  =====================================================================================

Weights are rounded to float32 when they are stored, and products are made in float64; a choice of float64 rows would
double the size for digits that no score needs. Nothing is pickled, and nothing in a directory can run.
"""
