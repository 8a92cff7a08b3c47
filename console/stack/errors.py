"""What can go wrong before or while the stack runs."""


class StackError(Exception):
    """The stack cannot start or go on. The message is for the person at the terminal; exit code 2."""
