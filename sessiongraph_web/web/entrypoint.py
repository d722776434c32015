"""The Datasette entry point: registers each bundled plugin under its own file name."""
