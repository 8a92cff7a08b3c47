#!/usr/bin/env python
"""Recourse's commands. `manage.py up` starts everything; `manage.py help` names the others."""

import os
import sys


def main() -> None:
    """Run one command.

    `up` makes the settings, so it runs without any. Every other command takes them from the environment or,
    when DATABASE_URL is not there, from what `up` left in the data folder (RECOURSE_DATA, else `var`).
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    if sys.argv[1:2] == ["up"]:
        from console.management.commands.up import Command

        Command().run_from_argv(sys.argv)
        return
    if "DATABASE_URL" not in os.environ:
        from console.stack.environment import load

        os.environ.update(load(os.environ.get("RECOURSE_DATA", "var")))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
