"""The model tools as a model is told of them: names, descriptions and the schemas of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sessiongraph_web.models import KINDS

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a model is told of it. `is_search`: its calls of one agent run one after another."""

    name: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    is_search: bool = False
    is_reader: bool = True

    @property
    def schema(self) -> Schema:
        """The JSON Schema of its arguments."""
        schema: Schema = {"type": "object", "properties": dict(self.properties)}
        return schema | {"required": list(self.required)} if self.required else schema


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _number(description: str) -> Schema:
    return {"type": "integer", "description": description}


def _texts(description: str, *enum: str) -> Schema:
    item: Schema = {"type": "string", "enum": list(enum)} if enum else {"type": "string"}
    return {"type": "array", "description": description, "items": item}


_SURFACES: Final = ("current", "shadowed", "log-only")
_TARGET: Final = {"session_id": _text("Target session id. Omit for the current session.")}
_SEQ: Final = {"seq": _number("Target event sequence number.")}


def _event_filters(prefix: str, surfaces: str) -> dict[str, Schema]:
    time = "Inclusive timezone-qualified ISO 8601 event-time"
    return {
        f"{prefix}seq_from": _number("Inclusive event sequence lower bound."),
        f"{prefix}seq_to": _number("Inclusive event sequence upper bound."),
        f"{prefix}time_from": _text(f"{time} lower bound."),
        f"{prefix}time_to": _text(f"{time} upper bound."),
        "event_types": _texts("Event types to include."),
        surfaces: _texts("Event surfaces to include.", *_SURFACES),
    }


SESSION_TOOLS: Final = (
    Tool(
        "session_search",
        "Search prior sessions in the caller workspace and return the strongest matching event from each"
        " session.",
        {
            "query": _text("Literal full-text query over prior session history."),
            "session_ids": _texts("Optional session ids to include."),
            "created_at_from": _text("Inclusive timezone-qualified ISO 8601 creation-time lower bound."),
            "created_at_to": _text("Inclusive timezone-qualified ISO 8601 creation-time upper bound."),
            "parent_session_ids": _texts("Optional direct parent session ids."),
            "include_root_sessions": {
                "type": "boolean",
                "description": "Include sessions with no parent in the parent filter.",
            },
            "availability": _texts("Require at least one selected source availability.", "live", "persisted"),
            **_event_filters("event_", "event_surfaces"),
        },
        ("query",),
        is_search=True,
    ),
    Tool(
        "session_event_search",
        "Search prior events in one authorized session; the current session excludes the step performing this"
        " call.",
        {
            **_TARGET,
            "query": _text("Literal full-text query over the target session."),
            **_event_filters("", "surfaces"),
        },
        ("query",),
        is_search=True,
    ),
    Tool(
        "session_trace",
        "Read the authorized session lineage around one session, including complete visible ancestor and"
        " descendant relationships.",
        _TARGET,
    ),
    Tool(
        "session_event_trace",
        "Read every direct replacement and relationship to a cited source event for one event in an authorized"
        " session.",
        _TARGET | _SEQ,
        ("seq",),
    ),
    Tool(
        "session_event_read",
        "Read one full unabridged event and optional neighboring raw-event summaries from an authorized session.",
        _TARGET
        | _SEQ
        | {
            "before": _number("Number of preceding raw events to summarize. Omit for none."),
            "after": _number("Number of following raw events to summarize. Omit for none."),
        },
        ("seq",),
    ),
)
GRAPH_TOOLS: Final = (
    Tool(
        "sessiongraph",
        "Search and read the local history of coding sessions. Operations: search (full text, Chinese included),"
        " session (one session with its events, by id or unique beginning), timeline (sessions, newest first),"
        " workspaces, status (of the index). Use this instead of grepping session log files.",
        {
            "operation": {
                "type": "string",
                "description": "What to do.",
                "enum": ["search", "session", "timeline", "workspaces", "status"],
            },
            "query": _text('search: words, "phrases" and -exclusions to look for.'),
            "kinds": _texts("search: only these kinds of text.", *KINDS),
            "session_id": _text("session: its id, or the unique beginning of it."),
            "ordinal": _number("session: begin at this position in the log."),
            "log": _number("session: which log, where several carry the id."),
            "workspace": _text("search, timeline: only this exact working directory."),
            "after": _text("search, timeline: from this time on; ISO 8601 with an offset, or a date."),
            "before": _text("search, timeline: up to this time."),
            "limit": _number("Most rows in the answer."),
            "cursor": _text("search, timeline: the next page, as the page before named it."),
        },
        ("operation",),
        is_search=True,
    ),
    Tool(
        "sessiongraph_index",
        "Bring the index of the local session history up to date, or build it anew. Only for the owner.",
        {"force": {"type": "boolean", "description": "Build everything anew."}},
        is_search=True,
        is_reader=False,
    ),
)
TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in SESSION_TOOLS + GRAPH_TOOLS}


def in_workspace() -> tuple[Tool, ...]:
    """Return the tools of a client that is bound to a workspace: it has no own session, and never indexes."""
    named = {"session_id": _text("Target session id, as a search printed it.")}
    bound = [
        replace(tool, properties=dict(tool.properties) | named, required=(*tool.required, "session_id"))
        if "session_id" in tool.properties
        else tool
        for tool in SESSION_TOOLS
    ]
    readers = [tool for tool in GRAPH_TOOLS if tool.is_reader]
    return (*bound, *(_without(tool, "workspace") for tool in readers))


def _without(tool: Tool, name: str) -> Tool:
    return replace(tool, properties={key: schema for key, schema in tool.properties.items() if key != name})
