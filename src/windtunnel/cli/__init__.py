"""The command line. Modules here import what is light; everything else when a command runs."""

from __future__ import annotations


def main() -> None:
    """Run the command ``windtunnel`` with the process's arguments; exits the process."""
    try:
        from windtunnel.cli.root import windtunnel

        windtunnel.main(prog_name="windtunnel")
    except KeyboardInterrupt:  # while still loading, or while already leaving
        raise SystemExit(130) from None
