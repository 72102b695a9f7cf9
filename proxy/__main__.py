"""``python -m proxy``: the command line, where its script is not on the path."""

from proxy.cli import main

if __name__ == "__main__":
    main(prog_name="toolgraft")
