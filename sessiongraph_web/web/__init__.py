"""The web side: everything that knows Datasette."""
