"""``python -m streamlabel``: the same as the command ``streamlabel``."""

from streamlabel.cli import main

if __name__ == "__main__":
    main(prog_name="streamlabel")
