"""`python -m sessiongraph_web`: the command line."""

from sessiongraph_web.cli import main

if __name__ == "__main__":
    main(prog_name="sessiongraph-web")
