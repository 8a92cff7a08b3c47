"""The faces of Recourse: settings, screens, live updates, REST API, commands."""
