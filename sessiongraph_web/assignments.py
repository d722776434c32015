"""Values that are secrets for their names: `password: …`, `API_KEY=…`, `"token": "…"` and their like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

MAX_NAME_CHARS: Final = 64  # how far before a sign the name of a value is looked for
MAX_KEYS: Final = 4096  # keys that are remembered: logs use few

Style = Literal["quoted", "exported", "bare"]  # how a value is written: "v", NAME=v, name: v


def find(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of values given to names like `password` or `API_KEY`."""
    done = 0
    for sign in _ASSIGN_SIGN.finditer(text):
        name = _NAME.search(text[max(done, sign.start() - MAX_NAME_CHARS) : sign.start()].rstrip("\"'`\\ \t"))
        value = _VALUE.match(text, sign.start()) if name and sign.start() >= done else None
        if name is None or value is None:
            continue
        start, end = _value_span(text, name[0], value)
        if start < end:
            yield start, end
            done = end


@lru_cache(MAX_KEYS)
def secret_name(key: str) -> str | None:
    """Return the part of a key that names a secret, in lower case."""
    name = _NAME.search(key)
    return name[0].lower() if name else None


def is_real(name: str, value: str, style: Style) -> bool:
    """Say whether a value looks like a secret rather than code, a type or an example."""
    is_password = name.startswith(("pass", "pwd", "密码", "口令"))
    if len(value) < (4 if is_password else 8) or "[masked:" in value or _PLACEHOLDER.match(value):
        return False
    if name in _LOOSE_NAMES:
        return len(value) >= (6 if is_password else 16) and _mixed(value) and value[0] not in "/~."
    if style == "exported":
        return is_password or not value.isdigit()
    if value.isdigit():
        return is_password
    if style == "quoted":
        return is_password or has_digit(value) or (len(value) >= 16 and value.isalpha())
    return not _IDENTIFIER.match(value) and len(value) >= 6 and (_mixed(value) or len(value) >= 20)


def _mixed(value: str) -> bool:
    return has_digit(value) and any(c.isalpha() for c in value)


def has_digit(value: str) -> bool:
    return any(c.isdigit() for c in value)


def _value_span(text: str, name: str, value: re.Match[str]) -> tuple[int, int]:
    """Return where the secret is in a value, or an empty span."""
    start, end, style = _extent(text, name, value)
    if not is_real(name.lower(), text[start:end], style):
        return start, start
    if end == value.end("bare"):  # a very long value goes on
        end = _BARE_REST.match(text, end).end()  # type: ignore[union-attr]  # it matches anywhere
    return start, end


def _extent(text: str, name: str, value: re.Match[str]) -> tuple[int, int, Style]:
    if value["quoted"] is not None:
        return *value.span("quoted"), "quoted"
    start, end = value.span("bare")
    if name.isupper() and value["sign"] == "=":
        return start, end, "exported"
    end = start + len(_BARE_END.split(value["bare"], maxsplit=1)[0])
    return (start, start, "bare") if text[end : end + 1] in ("(", "[") else (start, end, "bare")


_LOOSE_NAMES: Final = frozenset({"key", "auth", "pass", "pwd"})  # these name other things as well
_NAME: Final = re.compile(
    r"(?:(?i:passw(?:or)?d|passphrase|secret|token|credentials?"
    r"|(?:api|access|secret|private|account|client|auth|signing|encryption|master|license)[-_ ]?key)"
    r"|(?<=_)(?:KEY|PASS|PWD|AUTH|auth)|(?<![A-Za-z0-9])(?:[Pp]wd|[Pp]ass)|密码|密钥|口令|令牌)\Z"
)
_BARE: Final = r"""(?:[\x21\x23-\x26\x28-\x5b\x5d-\x5f\x61-\x7e]|\\(?![nrt"'`\\]))"""
_VALUE: Final = re.compile(
    r"""(?P<sign>(?::[ \t]{0,4}[A-Za-z][\w.\[\]| ]{0,40})?=(?!=)>?|:=|==|[:：>](?!:))[ \t]{0,40}"""
    r"""(?:(?P<quote>\\{0,3}["'`])(?P<quoted>(?:(?!(?P=quote))[\x21-\x7e]){4,4096})(?:(?P=quote)|\Z)"""
    rf"""|(?P<bare>{_BARE}{{4,512}}))"""
)
_BARE_REST: Final = re.compile(rf"{_BARE}*")
_BARE_END: Final = re.compile(r"[,;&)(<>}\[\]|]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w]*(?:[.:/-][A-Za-z_]\w*)+\Z|[A-Za-z_]+\d{0,2}\Z|[-+./:_A-Za-z]+\Z")
_PLACEHOLDER: Final = re.compile(
    r"""(?:\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$[A-Za-z_]+|<.*>|<.*|\{.*\}?|%[A-Z_]+%|%\(?\w+\)?s?|\#\{.*|!\w+
    |[xX*.•·\#_?-]+|.*\.\.\.+.*|.*(?:process\.env|os\.environ|getenv|import\.meta).*
    |(?i:(?:your|my|the|some|an?|insert|replace|enter|put|add|fake|dummy|example|sample|placeholder|change|todo|tbd
      |none|null|nil|true|false|undefined|string|str|required|optional|hidden|redacted|masked|secret|password|passwd|token
      |test|foo|bar|bytes|bool|boolean|number|object|any|unknown|value|access|api|user|username|default)
      [A-Za-z]*(?:[-_ ][A-Za-z]+)*)
    |(?i:.*[-_]here))\Z""",
    re.VERBOSE,
)
# The ends of names, which decide cheaply. Looking behind needs a fixed width; spelling out the case is faster.
_NAME_END: Final = (
    "(?:[oO][kK][eE][nN]|[cC][rR][eE][tT]|[wW][oO][rR][dD]|[sS][sS][wW][dD]|[-_ isteghnrISTEGHNR][kK][eE][yY]"
    "|[tT][iI][aA][lL]|[iI][aA][lL][sS]|[rR][aA][sS][eE]|[pP][aA][sS][sS]|[^a-z][pP][wW][dD]|[aA][uU][tT][hH]"
    "|(?<=[zZ][aA])[tT][iI][oO][nN]|[?&;]sig)"
)
_LAST_THREE: Final = "[kKrRoOwWeEiIaAsStTuUpP][eErRwWoOaAlLsStTiI][nNtTdDyYlLsSeEhHgG]"
GAP: Final = r"""["'`\\\ \t]"""
# An identifier after white space is code or prose, not a value; but `name: type = value` may be one.
_NO_CODE: Final = r"(?![ \t]+(?!(?i:bearer|token|basic|apikey|key)[ ])[A-Za-z_.]+(?:[,;()\n]|\Z|[ \t]+[^=\s]))"
AFTER_NAME: Final = rf"""(?:
    (?<={_LAST_THREE}.)(?<={_NAME_END}.)
  | (?<={GAP}.)(?:
      (?<={_LAST_THREE}..)(?<={_NAME_END}..)
    | (?<={GAP}..)(?:
        (?<={_NAME_END}...)|(?<=\\["'`]\ .)(?<={_NAME_END}....)
      | (?<=\s\s.)|(?<=\\\\["'`].)|(?<=\\\\["'`]\ .)
      )
    )
){_NO_CODE}"""
_ASSIGN_SIGN: Final = re.compile(
    f"[=:>]{AFTER_NAME}|[=:：](?:(?<=[码钥令牌].)|(?<=[码钥令牌]{GAP}.)|(?<=\\A[Pp]wd.)|(?<=\\A[Pp]wd{GAP}.))",
    re.VERBOSE,
)
