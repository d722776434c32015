"""Names of archive entries: safe to unpack on any system, and no two alike where letter case is ignored."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

MAX_NAME_BYTES: Final = 240  # of a whole entry name, in UTF-8
MAX_FOLDER_CHARS: Final = 120
MAX_EXTENSION_BYTES: Final = 16
_DOWNLOAD_CHARS: Final = 200
_UNSAFE_IN_ID: Final = re.compile(r"[^A-Za-z0-9_-]")
_UNSAFE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNSAFE_CHARACTERS: Final = frozenset('<>:"/\\|?*')
# Devices on Windows, whatever the extension (the superscripts count as digits there).
_RESERVED: Final = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³]) *(?:\..*)?", re.I
)


def safe_id(session_id: str) -> str:
    """Return an id with every UTF-16 unit outside `A-Za-z0-9_-` as `_`, as dsh itself spells it in archives."""
    return _UNSAFE_IN_ID.sub(lambda match: "__" if match[0] > "\uffff" else "_", session_id)


def download_name(session_id: str, suffix: str = "zip") -> str:
    """Return the file name of the download of a session."""
    return f"dsh-session-{safe_id(session_id)[:_DOWNLOAD_CHARS]}.{suffix}"


def safe_name(name: str, limit: int = MAX_NAME_BYTES) -> str:
    """Return a file name that every system can unpack, as near to `name` as can be, in `limit` bytes."""
    shown = "".join(
        "_" if _is_unsafe(character) else character for character in unicodedata.normalize("NFC", name)
    )
    shown = _shortened(shown.strip(" ").rstrip(". "), limit - 1)
    return _not_reserved(shown or "_")


class Folders:
    """The folders of the sessions in one archive: each session's own, told apart by a suffix from its id."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def add(self, session_id: str) -> str:
        """Return the folder name for a session that has none yet."""
        plain = _not_reserved(safe_id(session_id) or "_")
        digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        name = plain if len(plain) <= MAX_FOLDER_CHARS else f"{plain[: MAX_FOLDER_CHARS - 9]}-{digest[:8]}"
        for length in (8, *range(9, 65)):
            if name.casefold() not in self._taken:
                break
            name = f"{plain[: MAX_FOLDER_CHARS - 65]}-{digest[:length]}"
        self._taken.add(name.casefold())
        return name


def _is_unsafe(character: str) -> bool:
    return character in _UNSAFE_CHARACTERS or unicodedata.category(character) in _UNSAFE_CATEGORIES


def _not_reserved(name: str) -> str:
    return f"_{name}" if _RESERVED.fullmatch(name) else name


def _shortened(name: str, limit: int) -> str:
    if len(name.encode()) <= limit:
        return name
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension.encode()) > MAX_EXTENSION_BYTES:
        stem, dot, extension = name, "", ""
    kept = stem.encode()[: limit - len((dot + extension).encode())].decode("utf-8", "ignore")
    return kept.rstrip(". ") + dot + extension
