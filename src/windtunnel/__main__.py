"""``python -m windtunnel``: the command, however the package came to be installed."""

from windtunnel.cli import main

if __name__ == "__main__":
    main()
