"""How text becomes tokens, on both sides of a search: what is indexed, what a query asks, and where it matched.

Runs of Han, kana and Hangul become overlapping pairs and then their last character alone; everything else is
left to FTS5's `unicode61`. A query is made of pieces: each is one FTS5 phrase, in which a run that ends the piece
goes without its last lone character, or, if it is a single character, stands for the beginning of a pair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from operator import add
from typing import Final, Literal

from sessiongraph_web import literal, unicode61
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.excerpts import Excerpt as Excerpt
from sessiongraph_web.excerpts import Span
from sessiongraph_web.excerpts import snippet as snippet
from sessiongraph_web.language import sentence

TOKENIZER_VERSION: Final = 1  # raise it with any change of what `index_text` returns
MAX_QUERY_CHARACTERS: Final = 4096

Match = Literal["terms", "phrase", "text"]

_CJK_RANGES: Final = (
    *((0x1100, 0x11FF), (0x2E80, 0x2FD5), (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035)),
    *((0x3038, 0x303C), (0x3041, 0x3096), (0x3099, 0x309A), (0x309D, 0x309F), (0x30A1, 0x30FA)),
    *((0x30FC, 0x30FF), (0x3131, 0x318E), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),
    *((0xA960, 0xA97C), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FB), (0xF900, 0xFAFF), (0xFF66, 0xFF9F)),
    *((0xFFA0, 0xFFDC), (0x16FE2, 0x16FE3), (0x16FF0, 0x16FF1), (0x1AFF0, 0x1B16F), (0x20000, 0x3FFFF)),
)


def _without(ranges: Iterable[Span], removed: Iterable[Span]) -> Iterator[Span]:
    """Cut `removed` out of sorted ranges of code points (first and last, inclusive)."""
    for first, last in ranges:
        for gone_first, gone_last in removed:
            if gone_last < first or gone_first > last:
                continue
            if gone_first > first:
                yield first, gone_first - 1
            first = gone_last + 1
        if first <= last:
            yield first, last


def _set(ranges: Iterable[Span]) -> str:
    """Write ranges of code points as the inside of a character class."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


def _spellings() -> dict[str, str]:
    """Return, for each character that unicode61 folds others to, the character class of all of them."""
    spelled: dict[int, str] = {}
    for code, folded in unicode61.FOLDS.items():
        spelled[folded] = spelled.get(folded, chr(folded)) + chr(code)
    return {chr(folded): f"[{characters}]" for folded, characters in spelled.items()}


_WORD_RANGES: Final = tuple(_without(unicode61.TOKEN_RANGES, _CJK_RANGES))
_CJK: Final = f"[{_set(_CJK_RANGES)}]"
_WORD: Final = f"[{_set(_WORD_RANGES)}]"
_WORD_CHARACTER: Final = re.compile(_WORD)
_MARKS: Final = re.compile(f"[{unicode61.DIACRITICS}]+")
_ASTRAL: Final = (0x10000, 0x10FFFF)
# Ranges of astral code points are tried one by one: keep them out of the set that every space is tried against.
_GAPS: Final = re.compile(
    f"(?:[^{_set([*_without([*_WORD_RANGES, *_CJK_RANGES], [_ASTRAL]), _ASTRAL])}]"
    f"|[{_set([_ASTRAL])}](?<!{_WORD})(?<!{_CJK}))+"
)
# A single range compiles fast; what it holds beside diacritics separates words, and is looked for afterwards.
_LIKE_MARKS: Final = f"[{min(unicode61.DIACRITICS)}-{max(unicode61.DIACRITICS)}]*"
_FALSE_MARK: Final = re.compile(f"(?![{unicode61.DIACRITICS}]){_LIKE_MARKS[:-1]}")
# Beside ASCII: letters and digits, what belongs to them, and whatever lies beyond the first plane.
_FOREIGN: Final = re.compile(
    f"[{_set([*_without(_WORD_RANGES, [(0, 0x7F), _ASTRAL]), _ASTRAL])}{unicode61.DIACRITICS}]"
)
# Written as what it is not: then one look at a table tells most characters, instead of one at each astral range.
_CJK_RUN: Final = re.compile(f"[^{_set(_without([(0, 0x10FFFF)], _CJK_RANGES))}]+")
_ELEMENT: Final = re.compile(f"{_CJK}+|{_WORD}(?:{_WORD}|[{unicode61.DIACRITICS}])*")
_FOLD: Final = str.maketrans({**unicode61.FOLDS, **dict.fromkeys(map(ord, unicode61.DIACRITICS))})

_SPELLINGS: Final = _spellings()

# What unicode61 takes for separators stands in pairs as a private character of the last plane.
_STAND_INS: Final = {
    code: 0x100000 + code
    for first, last in _without(_CJK_RANGES, unicode61.TOKEN_RANGES)
    for code in range(first, last + 1)
}
_NEEDS_STAND_IN: Final = re.compile(f"[{''.join(map(chr, _STAND_INS))}]")

_NOTHING: Final = re.compile("(?!)")
_UNSAFE: Final = re.compile("[\0\ud800-\udfff]")
_CURLY_QUOTES: Final = str.maketrans("“”", '""')
_TERM: Final = re.compile(
    rf"""(?P<minus>(?<![^{literal.SPACE}])-(?="[^"]*"|{_CJK}|[^\W\d_]))?"""
    rf"""(?:"(?P<phrase>[^"]*)"|(?P<word>[^{literal.SPACE}]+))"""
)


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for. `pieces` must all be there, `excluded` must not; `parts` is what a loose search asks
    for instead of `pieces` (the same where nothing can be taken apart)."""

    match: Match
    text: str
    pieces: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True where there is nothing to look for: no entry matches."""
        return self.match != "text" and not self.pieces

    @property
    def can_loosen(self) -> bool:
        return self.parts != self.pieces


@dataclass(frozen=True, slots=True)
class _Element:
    """A word or a CJK run of a piece, as it is looked for in a text."""

    pattern: re.Pattern[str]
    is_cjk: bool


def index_text(text: str) -> str:
    """Return what the index is given for a text."""
    if text.isascii():
        return text
    lines = text.split("\n")  # most lines of a long text are ASCII, and no run goes over the end of one
    return "\n".join([line if line.isascii() else _CJK_RUN.sub(_pairs, line) for line in lines])


def parse(query: str, match: Match = "terms") -> Query:
    """Read a query; a blank or too long one is SESSION_QUERY_INVALID_QUERY."""
    text = _UNSAFE.sub("\ufffd", query).strip(literal.SPACE)
    if not text:
        raise SessionGraphError("SESSION_QUERY_INVALID_QUERY", "The query is empty.")
    if len(text) > MAX_QUERY_CHARACTERS:
        raise SessionGraphError(
            "SESSION_QUERY_INVALID_QUERY",
            sentence("The query is longer than %(limit)s characters.", limit=format(MAX_QUERY_CHARACTERS, ",")),
            limit=MAX_QUERY_CHARACTERS,
        )
    text = literal.collapse(text)
    if match == "text":
        return Query(match, text)
    if match == "phrase":
        pieces = _worded([text])
        return Query(match, text, pieces, parts=pieces)
    return _parse_terms(text)


def match_expression(query: Query, *, loose: bool = False) -> str | None:
    """Return the FTS5 expression of a query; None where no entry can match, or FTS5 is not what answers."""
    pieces = query.parts if loose else query.pieces
    if not pieces:
        return None
    wanted = " AND ".join(map(_fts_phrase, pieces))
    unwanted = " OR ".join(map(_fts_phrase, query.excluded))  # a chain of NOTs would nest too deep for FTS5
    return f"({wanted}) NOT ({unwanted})" if unwanted else wanted


def necessary_expression(query: Query) -> str | None:
    """Return an FTS5 expression that every entry fulfils which a query may find; None where there is none.

    Of a literal text only CJK runs are sure: a word may stand inside a longer one, and its case is folded by
    other rules.
    """
    if query.match != "text":
        return match_expression(query, loose=True)
    return " AND ".join(map(_fts_phrase, dict.fromkeys(_CJK_RUN.findall(query.text)))) or None


def spans(text: str, query: Query, *, loose: bool = False) -> list[Span]:
    """Return where a matching text matches: code points, in order, overlapping instances merged."""
    if query.match == "text":
        return [found.span() for found in literal.pattern(query.text).finditer(text)]
    pieces = query.parts if loose else query.pieces
    look = _finder(text)
    found = [span for piece in pieces for span in look(piece)]
    return _merged(sorted(found) if len(pieces) > 1 else found)


def span_counter(query: Query, *, loose: bool = False) -> Callable[[str], int]:
    """Return the function that says of a matching text how many `spans` it has."""
    pieces = query.parts if loose else query.pieces
    if query.match != "text" and len(pieces) == 1 and _cannot_overlap_itself(pieces[0]):
        return lambda text: text.count(pieces[0])
    # Different words never overlap, so that none of their spans are merged.
    patterns = [_ascii_pattern(piece) for piece in pieces] if query.match != "text" else []
    words = {pattern for pattern, length in patterns if length == 1} - {_NOTHING}
    finders = [pattern.findall for pattern in words] if len(words) == len(pieces) else []

    def count(text: str) -> int:
        if finders and _is_plain(text):
            lowered = text.lower()
            return sum([len(find(lowered)) for find in finders])
        return len(spans(text, query, loose=loose))

    return count


def _cannot_overlap_itself(piece: str) -> bool:
    """Say whether a piece is a CJK run of which no end is a beginning."""
    return bool(_CJK_RUN.fullmatch(piece)) and not any(
        piece.startswith(piece[start:]) for start in range(1, len(piece))
    )


def _parse_terms(text: str) -> Query:
    wanted: list[str] = []
    unwanted: list[str] = []
    written = []
    for term in _TERM.finditer(text.translate(_CURLY_QUOTES)):
        piece = term["word"] if term["phrase"] is None else term["phrase"]
        written.append((term.group(), piece, term["phrase"] is not None))
        (unwanted if term["minus"] else wanted).append(piece)
    pieces = _worded(wanted)
    if not pieces:  # nothing to exclude from: the minus signs are literal
        pieces, unwanted = _worded(piece for _, piece, _ in written), []
    quoted = {piece for _, piece, is_quoted in written if is_quoted}
    parts = _worded(part for piece in pieces for part in ([piece] if piece in quoted else _parts(piece)))
    return Query("terms", text, pieces, _worded(unwanted), parts)


def _worded(pieces: Iterable[str]) -> tuple[str, ...]:
    """Return the different pieces that hold a token: the others say nothing about a text."""
    return tuple(dict.fromkeys(piece for piece in pieces if _ELEMENT.search(piece)))


def _parts(piece: str) -> Iterator[str]:
    """Take a piece apart for a loose search: its pairs, and what lies between its CJK runs."""
    if not _CJK_RUN.search(piece):
        yield piece
        return
    for element in _ELEMENT.findall(piece):
        yield from map(add, element, element[1:]) if len(element) > 1 and _CJK_RUN.match(element) else [element]


def _pairs(run: re.Match[str]) -> str:
    characters = run.group()
    if _NEEDS_STAND_IN.search(characters):
        characters = characters.translate(_STAND_INS)
    return f" {' '.join(map(add, characters, characters[1:]))} {characters[-1]} "


def _fts_phrase(piece: str) -> str:
    """Write a piece as one quoted FTS5 phrase: nothing inside has a meaning."""
    elements = _ELEMENT.findall(piece)
    tokens = index_text(" ".join(elements)).split()
    if not _CJK_RUN.match(elements[-1]):
        return f'"{" ".join(tokens)}"'
    if len(elements[-1]) == 1:
        return f'"{" ".join(tokens)}" *'
    return f'"{" ".join(tokens[:-1])}"'


def _finder(text: str) -> Callable[[str], list[Span]]:
    """Return the function that finds the phrase of a piece in a text."""
    if text.isascii():
        return partial(_in_ascii, text.lower())
    if not _is_plain(text):
        return partial(_in_any, text)
    lowered = text.lower()
    return lambda piece: _in_ascii(lowered, piece) if _is_ascii_word(piece) else _in_any(text, piece)


def _is_plain(text: str) -> bool:
    """Say whether all words of a text are ASCII: what else it holds are CJK characters and separators."""
    return text.isascii() or not _FOREIGN.search(text)


def _is_ascii_word(piece: str) -> bool:
    pattern, words = _ascii_pattern(piece)
    return words == 1 and pattern is not _NOTHING


def _in_ascii(lowered: str, piece: str) -> list[Span]:
    """Find the piece's phrase in an ASCII text in lower case: the usual case, and several times as fast.

    A single ASCII word is found so in every plain text.
    """
    pattern, words = _ascii_pattern(piece)
    found = pattern.finditer(lowered) if words == 1 else _overlapping(pattern, lowered)
    return [one.span() for one in found]


@lru_cache(maxsize=4096)
def _ascii_pattern(piece: str) -> tuple[re.Pattern[str], int]:
    """Return the pattern of the whole phrase, which matches nothing if it is not ASCII, and its number of words.

    The border before it is looked at behind its first word, since `re` searches fast for what begins literally.
    """
    first, *rest = (element.translate(_FOLD) for element in _ELEMENT.findall(piece))
    if not "".join([first, *rest]).isascii():
        return _NOTHING, 1
    phrase = "[^0-9a-z]++".join([f"{first}(?<![0-9a-z]{first})", *rest])
    return re.compile(f"{phrase}(?![0-9a-z])"), 1 + len(rest)


def _in_any(text: str, piece: str) -> list[Span]:
    """Find the piece's phrase in any text."""
    elements = _elements(piece)
    found = _overlapping(elements[0].pattern, text)
    if len(elements) == 1 and elements[0].is_cjk:
        return [one.span() for one in found]
    ends = ((one.start(), _phrase_end(text, one, elements)) for one in found)
    return [(start, end) for start, end in ends if end is not None]


def _overlapping(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield every place where a pattern matches, those inside an earlier match too."""
    found = pattern.search(text)
    while found:
        yield found
        found = pattern.search(text, found.start() + 1)


@lru_cache(maxsize=4096)
def _elements(piece: str) -> tuple[_Element, ...]:
    """Return the words and runs of a piece as they are looked for in a text."""
    found = ((text, bool(_CJK_RUN.match(text))) for text in _ELEMENT.findall(piece))
    return tuple(_Element(re.compile(re.escape(text) if cjk else _spelled(text)), cjk) for text, cjk in found)


def _spelled(word: str) -> str:
    """Return the pattern of a word in all its spellings."""
    return _LIKE_MARKS.join(
        _SPELLINGS.get(character, re.escape(character)) for character in word.translate(_FOLD)
    )


def _phrase_end(text: str, found: re.Match[str], elements: tuple[_Element, ...]) -> int | None:
    """Return where the phrase ends whose first element was found; None if the rest does not follow."""
    if not elements[0].is_cjk and _continues_word(text, found.start()):
        return None
    end = _element_end(text, found, elements[0], is_last=len(elements) == 1)
    for before, element in pairwise(elements):
        if end is None:
            return None
        start = _after(_GAPS, text, end)
        following = element.pattern.match(text, start)
        if following is None or (start == end and not before.is_cjk and not element.is_cjk):
            return None
        end = _element_end(text, following, element, is_last=element is elements[-1])
    return end


def _element_end(text: str, found: re.Match[str], element: _Element, *, is_last: bool) -> int | None:
    """Return where an element ends: a word at a border, marks included; a run at its border, or anywhere."""
    if element.is_cjk:
        return None if not is_last and _CJK_RUN.match(text, found.end()) else found.end()
    if _FALSE_MARK.search(text, *found.span()):
        return None
    end = _after(_MARKS, text, found.end())
    return None if _WORD_CHARACTER.match(text, end) else end


def _after(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position


def _continues_word(text: str, start: int) -> bool:
    """Say whether what begins here goes on a word before it, diacritics between them left aside."""
    before = start - 1
    while before >= 0 and text[before] in unicode61.DIACRITICS:
        before -= 1
    return before >= 0 and bool(_WORD_CHARACTER.match(text, before))


def _merged(found: Iterable[Span]) -> list[Span]:
    """Join overlapping spans of a sorted sequence; neighbours stay apart, as in FTS5's `highlight()`."""
    merged: list[Span] = []
    for start, end in found:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
