"""The rooms of the package, lowest first: a module imports from its own room or a lower one."""

from __future__ import annotations

ROOMS: dict[str, tuple[str, ...]] = {
    "words": (
        "language",
        "errors",
        "models",
        "answers",
        "grants",
        "reports",
        "resuming",
        "config",
        "access",
        "loose",
        "naming",
        "spellings",
        "reasons",
        "wording",
        "kept",
    ),
    "secrets": ("assignments", "secretrules", "redact", "tokens"),
    "text": ("unicode61", "literal", "excerpts", "tokenizer"),
    "index files": ("damage", "schema", "generation", "trust", "soundness", "rows"),
    "store": (
        "frames",
        "generations",
        "narrow",
        "lines",
        "assembly",
        "sight",
        "discovery",
        "locks",
        "logs",
        "faults",
        "attachments",
    ),
    "meaning": ("surface", "outcomes", "documents", "repair", "tracing"),
    "requests": ("parameters", "filters", "cursors", "paging"),
    "search": ("ranking", "matching", "search"),
    "index runs": (
        *("framemap", "surfacerows", "jobs", "ledger", "planning", "standstill", "logwriter", "recorder"),
        *("workers", "checking", "update", "indexer", "refresher"),
    ),
    "reading": (
        *("catalog", "turnspans", "pool", "logmap", "unread", "headers", "corpus", "lineage", "reading", "inbox"),
        *("turnlist", "occurrences", "reads", "lists", "following"),
    ),
    "showing": (
        *("eventtypes", "facts", "terminal", "screen", "markup", "attached", "bodies", "cards", "toolcards"),
        *("transcripts", "days", "pictures", "family", "relations", "presentation", "console"),
    ),
    "leaving": (
        *("entrynames", "inert", "logtext", "zipstream", "packing", "exportmarkdown", "exporttext", "export"),
        *("leaving", "sharing"),
    ),
    "operations": ("operations",),
    "tools": ("toolschemas", "toolargs", "tooltext", "agents", "toolgraph", "tools", "mcp"),
    "web": (
        *("web", "web.links", "web.downloads", "web.render", "web.searching", "web.inside", "web.databases"),
        *("web.cells", "web.permissions", "web.app", "web.live", "web.slots", "web.http", "web.route"),
        *("web.signin", "web.offline", "web.views", "web.openapi", "web.routes", "web.security"),
        *("web.entrypoint",),
    ),
    "command line": (
        *("demo", "rehearsal", "web.server", "commands", "shell", "granting", "lending", "cli", "__main__"),
    ),
}
