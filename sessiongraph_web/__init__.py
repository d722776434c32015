"""Search, read, trace and export DeepSeek Harness (dsh) session logs in a browser."""

__version__ = "0.1.0"
