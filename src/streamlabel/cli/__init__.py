"""The command line: parse, call, print. The only code that prints."""

from __future__ import annotations

import click

from streamlabel._version import __version__
from streamlabel.cli.group import LazyCommand, StreamlabelGroup

COMMANDS = {
    "demo": LazyCommand("streamlabel.cli.first_look:demo", "The whole idea in a minute: labels arrive."),
    "init": LazyCommand("streamlabel.cli.init:init", "Files to begin with: tagged texts, answers for a new label."),
    "fit": LazyCommand("streamlabel.cli.fit:fit", "Learn the labels of a file; store the model in a directory."),
    "add-label": LazyCommand("streamlabel.cli.add_label:add_label", "Learn one more label from a few answers."),
    "add-all": LazyCommand("streamlabel.cli.in_blocks:add_all", "Learn the new labels of files past memory."),
    "next": LazyCommand("streamlabel.cli.add_label:next_question", "The texts to ask about a label next; or ask here."),
    "update": LazyCommand("streamlabel.cli.fit:update", "Learn known labels again with new texts."),
    "suggest": LazyCommand("streamlabel.cli.suggest:suggest", "The best labels for a text."),
    "explain": LazyCommand("streamlabel.cli.suggest:explain", "Why a text got its score for a label."),
    "predict": LazyCommand("streamlabel.cli.scoring:predict", "Labels for every text or row of a file."),
    "evaluate": LazyCommand("streamlabel.cli.scoring:evaluate", "P@k, AUC and F1 on a labelled file."),
    "labels": LazyCommand("streamlabel.cli.labels:labels", "The labels of a model and what they were learned from."),
    "relations": LazyCommand("streamlabel.cli.labels:relations", "Which labels resemble which."),
    "history": LazyCommand("streamlabel.cli.revisions:history", "Every revision of a model."),
    "diff": LazyCommand("streamlabel.cli.revisions:diff", "How the labels of two revisions differ."),
    "rollback": LazyCommand("streamlabel.cli.revisions:rollback", "Go back to a revision, or undo one label."),
    "undo": LazyCommand("streamlabel.cli.revisions:undo", "Undo the last change."),
    "rename": LazyCommand("streamlabel.cli.revisions:rename", "Give a label another name."),
    "retire": LazyCommand("streamlabel.cli.revisions:retire", "Take labels out."),
    "merge": LazyCommand("streamlabel.cli.labels:merge", "One label in place of several."),
    "threshold": LazyCommand("streamlabel.cli.labels:threshold", "Show or set where a label says yes."),
    "import": LazyCommand("streamlabel.cli.exchange:import_answers", "Learn from the export of an annotation tool."),
    "export": LazyCommand("streamlabel.cli.exchange:export_model", "Write a model for another tool."),
    "serve": LazyCommand("streamlabel.cli.serve:serve", "Answer over HTTP: suggest, explain, learn labels."),
    "token": LazyCommand("streamlabel.cli.serve:token", "Who may ask a service: add, list and revoke tokens."),
    "label-studio": LazyCommand("streamlabel.cli.serve:label_studio", "Catch up with answers in Label Studio."),
    "doctor": LazyCommand("streamlabel.cli.revisions:doctor", "Find damage in a model, and repair it."),
    "vacuum": LazyCommand("streamlabel.cli.revisions:vacuum", "Forget old revisions, and give back their room."),
    "stats": LazyCommand("streamlabel.cli.stats:stats", "Sums over rows: make, merge and show them, learn from them."),
    "bench": LazyCommand("streamlabel.cli.bench:bench", "How fast it is here: new labels, in CPU time and ratios."),
    "datasets": LazyCommand("streamlabel.cli.downloads:datasets", "List, describe and download the named data sets."),
    "reproduce": LazyCommand("streamlabel.cli.reproduce:reproduce", "Run an experiment; write its records and tables."),
    "completion": LazyCommand("streamlabel.cli.init:completion", "Completion for bash, zsh or fish."),
}


@click.group(cls=StreamlabelGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="streamlabel")
def main() -> None:
    """A multi-label classifier whose label set grows while it is in use.

    Data goes to standard output, progress and messages to standard error. Exit code: 0 done, 1 failure, 2 wrong
    usage, 3 not found, 4 conflict, 130 interrupted.
    """
