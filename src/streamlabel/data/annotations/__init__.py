"""What annotation tools export, read as texts, labels and, cell by cell, what nobody was asked.

=================  =====================================================================================
`read`             `load_annotations`: tells the tools apart, reads one file or one a person
`tools`            one record of a tool -> the text and the answers it was given
`answers`          answers -> yes, no, not asked: the newest of each person, then the majority; `Annotations`
`stream`           records of JSON Lines, JSON arrays and CSV, one at a time
=================  =====================================================================================

A label that was not offered, a task that was skipped and a text that nobody opened say nothing: they are unknown.
"""

from streamlabel.data.annotations.answers import Annotations
from streamlabel.data.annotations.read import load_annotations

__all__ = ["Annotations", "load_annotations"]
