"""Messages of the Python interface in the words of the command line: options and commands, not arguments and calls."""

from __future__ import annotations

__all__ = ["SHELL_WORDS", "in_shell_words"]

REPAIR = "'streamlabel doctor MODEL --repair'"
STILL_READ = "; commands that change nothing can still read it"

SHELL_WORDS = {  # longer phrases stand before those that they contain
    "open the model with leave_out_damaged=True to use the others, or repair it with doctor(repair=True)": (
        f"{REPAIR} takes it out, and the others can be used"
    ),
    "use model(learning=False), or doctor(repair=True)": f"{REPAIR} takes it out",
    "run doctor(repair=True)": f"run {REPAIR}",
    "; run doctor": "; run 'streamlabel doctor MODEL'",
    ", run doctor": ", run 'streamlabel doctor MODEL'",
    "; doctor says what can be saved": "; 'streamlabel doctor MODEL' says what can be saved",
    "one by one with rollback(label=...)": "one by one with --label",
    "; a model is read with mode='r'": STILL_READ,
    "; open the model with mode='r'": STILL_READ,
    ", or read with mode='r'": STILL_READ,
    "ModelStore.create makes one": "'streamlabel fit' makes one",
    "labels() lists all": "'streamlabel labels MODEL' lists all",
    "history() says what there was": "'streamlabel history MODEL' says what there was",
    "stored; pass it again, fitted: vectorizer=...": "stored; it can be used from Python only, with that vectoriser",
    "give Y_path, or the folder that holds both": "give Y with --labels-file, or the folder that holds both",
    "give the Mulan file as xml=, or n_labels= (-n: the last n)": "give the Mulan file with --labels-file",
    "; lower min_df, raise max_df or leave out stop_words": "; give more texts, or longer ones",
    "keep one, or pass repeated_labels='merge' to count it once": "keep one",
    "pass text_field=None or features_field=None to choose": "leave one of the two out",
    "give text_column or features_column, not both": "a file has texts or features, not both",
    "Pass question= (and text_field=)": "--question NAME says so (and --text FIELD)",
    "pass question= to say which to read": "--question NAME says which to read",
    "pass text_field= to say which is the text": "--text FIELD says which is the text",
    "pass format=, one of": "--format gives it, one of",
    "delimiter_of_tags is ": "--tag-delimiter is ",
    "weak_no is ": "--weak-no is ",
    ", or raise max_line_bytes": "",
    "; raise max_line_bytes if that is right": "; is it the right file?",
    ", or raise max_record_bytes": "",
    "; raise max_record_bytes if that is right": "; is it the right file?",
    "; raise max_bytes if that is right": "; split the file",
}


def in_shell_words(message: str) -> str:
    """The message for a person at a shell."""
    for python, shell in SHELL_WORDS.items():
        message = message.replace(python, shell)
    return message
