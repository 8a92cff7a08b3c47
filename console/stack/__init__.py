"""What `manage.py up` starts and watches: PostgreSQL, Valkey and our own processes, below one data folder.

Nothing here needs Django's settings: this package makes the environment that the settings are read from.
"""
