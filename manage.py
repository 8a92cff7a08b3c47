#!/usr/bin/env python
"""Recourse's commands. `manage.py up` starts everything; `manage.py help` names the others."""

import os
import sys


def main() -> None:
    """Run one command.

    `up` and `simulate` make the settings, so they run without any. Every other command takes them from the
    environment or, when DATABASE_URL is not there, from what `up` left in the data folder (RECOURSE_DATA, else `var`).
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    if sys.argv[1:2] in (["up"], ["simulate"]):
        from importlib import import_module

        import_module(f"console.management.commands.{sys.argv[1]}").Command().run_from_argv(sys.argv)
        return
    if "DATABASE_URL" not in os.environ:
        from console.stack.environment import load

        os.environ.update(load(os.environ.get("RECOURSE_DATA", "var")))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
