"""Tokens: what is indexed, how a query is read, what FTS5 is asked, and where a text matches."""

from __future__ import annotations

import pytest

from sessiongraph_web import tokenizer
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.tokenizer import (
    MAX_QUERY_CHARACTERS,
    Match,
    index_text,
    match_expression,
    necessary_expression,
    parse,
    spans,
)

INDEXED = {
    "广告": "广告 告",
    "告": "告",
    "我在改广告SDK": "我在 在改 改广 广告 告 SDK",
    "重跑gen-itgc后": "重跑 跑 gen-itgc 后",
    "plain ASCII, a.b_c": "plain ASCII, a.b_c",
    "café Ünïcode": "café Ünïcode",
    "ドライブ": "ドラ ライ イブ ブ",
    "ひらがな": "ひら らが がな な",
    "결제 완료": "결제 제 완료 료",
    "𠮷野家": "𠮷野 野家 家",
    "ﾄﾞﾗｲﾌﾞ": "ﾄﾞ ﾞﾗ ﾗｲ ｲﾌ ﾌﾞ ﾞ",
    "豈更": "豈更 更",
    "々〆〇": "々〆 〆〇 〇",
    "问：答。": "问 ： 答 。",
    "漢字カナ한글": "漢字 字カ カナ ナ한 한글 글",
    "\U00030000\U00031350": "\U00030000\U00031350 \U00031350",
}


@pytest.mark.parametrize(("text", "tokens"), INDEXED.items())
def test_cjk_runs_become_pairs_and_their_last_character(text: str, tokens: str) -> None:
    """Runs of Han, kana and Hangul become overlapping pairs, then their last character; all else stays."""
    assert index_text(text).split() == tokens.split()


def test_what_unicode61_would_drop_from_a_pair_has_a_stand_in() -> None:
    """Combining voice marks and radicals separate words for unicode61, so private characters stand for them."""
    assert index_text("か\u3099⽤").split() == ["か\U00103099", "\U00103099\U00102f64", "\U00102f64"]


Reading = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
READ: dict[str, Reading] = {
    "广告 sdk": (("广告", "sdk"), (), ("广告", "sdk")),
    '"connection reset" peer': (("connection reset", "peer"), (), ("connection reset", "peer")),
    "“Rebecca Sugar” x": (("Rebecca Sugar", "x"), (), ("Rebecca Sugar", "x")),
    "don’t stop": (("don’t", "stop"), (), ("don’t", "stop")),
    "fox -dog": (("fox",), ("dog",), ("fox",)),
    'fox -"lazy dog" -广告': (("fox",), ("lazy dog", "广告"), ("fox",)),
    "fox -“lazy dog”": (("fox",), ("lazy dog",), ("fox",)),
    "-dog fox": (("fox",), ("dog",), ("fox",)),
    "fox\u3000-dog": (("fox",), ("dog",), ("fox",)),
    "-dog": (("dog",), (), ("dog",)),
    '-"lazy dog" -fox': (("lazy dog", "fox"), (), ("lazy dog", "fox")),
    "!!! -dog": (("dog",), (), ("dog",)),
    "fox -5 --verbose -_x -.y": (
        ("fox", "-5", "--verbose", "-_x", "-.y"),
        (),
        ("fox", "-5", "--verbose", "-_x", "-.y"),
    ),
    "multi-agent x-ray": (("multi-agent", "x-ray"), (), ("multi-agent", "x-ray")),
    '"fox"-dog': (("fox", "-dog"), (), ("fox", "-dog")),
    'foo"bar': (('foo"bar',), (), ('foo"bar',)),
    '"unclosed fox': (('"unclosed', "fox"), (), ('"unclosed', "fox")),
    'fox -"unclosed': (("fox", '-"unclosed'), (), ("fox", '-"unclosed')),
    '{"name": "two words"}': (('{"name":', "two words"), (), ('{"name":', "two words")),
    "a && b || c": (("a", "b", "c"), (), ("a", "b", "c")),
    "AND OR NOT NEAR( x:y *": (("AND", "OR", "NOT", "NEAR(", "x:y"), (), ("AND", "OR", "NOT", "NEAR(", "x:y")),
    "fox fox FOX": (("fox", "FOX"), (), ("fox", "FOX")),
    "身份证": (("身份证",), (), ("身份", "份证")),
    "支付gen-itgc后": (("支付gen-itgc后",), (), ("支付", "gen", "itgc", "后")),
    '"身份证"': (("身份证",), (), ("身份证",)),
    "“身份证” 错误码": (("身份证", "错误码"), (), ("身份证", "错误", "误码")),
    "fox -身份证": (("fox",), ("身份证",), ("fox",)),
}


@pytest.mark.parametrize(("query", "reading"), READ.items())
def test_terms_are_read(query: str, reading: Reading) -> None:
    """Pieces wanted and unwanted, and the parts that a loose search asks for, of a query in the term language."""
    read = parse(query)
    assert (read.pieces, read.excluded, read.parts) == reading


@pytest.mark.parametrize(
    "query", ["!!!", "*", "🎉", "( )", "\0", '""', '"!" -', "\ud800", "\u200f", "‼️ -…", "%_?"]
)
@pytest.mark.parametrize("match", ["terms", "phrase"])
def test_a_query_without_tokens_asks_for_nothing(query: str, match: Match) -> None:
    """No token, no expression: nothing can match, and nothing is wrong."""
    read = parse(query, match)
    assert (read.pieces, match_expression(read), match_expression(read, loose=True)) == ((), None, None)


@pytest.mark.parametrize("query", ["", " ", "\t\n\u3000\ufeff\u00a0"])
@pytest.mark.parametrize("match", ["terms", "phrase", "text"])
def test_a_blank_query_is_refused(query: str, match: Match) -> None:
    """White space, JavaScript's kinds included, is no query."""
    with pytest.raises(SessionGraphError) as caught:
        parse(query, match)
    assert (caught.value.code, caught.value.detail) == ("SESSION_QUERY_INVALID_QUERY", "The query is empty.")


@pytest.mark.parametrize("match", ["terms", "phrase", "text"])
def test_the_limit_is_named_and_counts_after_trimming(match: Match) -> None:
    """4,096 characters are taken, white space around them aside; one more is refused, naming the limit."""
    assert parse(f"  {'字' * MAX_QUERY_CHARACTERS}  ", match).text == "字" * MAX_QUERY_CHARACTERS
    with pytest.raises(SessionGraphError) as caught:
        parse("字" * (MAX_QUERY_CHARACTERS + 1), match)
    assert caught.value.code == "SESSION_QUERY_INVALID_QUERY"
    assert caught.value.detail == "The query is longer than 4,096 characters."
    assert caught.value.fields == {"limit": 4096}


def test_white_space_and_unsafe_characters_of_a_query() -> None:
    """Runs of white space become one space; NUL and lone surrogates become U+FFFD."""
    assert parse(" a \n\t b\ud800\0 ", "phrase").text == "a b\ufffd\ufffd"


EXPRESSIONS = {
    "广告": '"广告"',
    "广": '"广" *',
    "告SDK": '"告 SDK"',
    "SDK广": '"SDK 广" *',
    "广告SDK": '"广告 告 SDK"',
    "x广告": '"x 广告"',
    'say"what"': '"say what"',
    "a-b c": '"a b" AND "c"',
    "fox -dog -cat": '("fox") NOT ("dog" OR "cat")',
    "a b -c": '("a" AND "b") NOT ("c")',
    "广告！": '"广告"',
}


@pytest.mark.parametrize(("query", "expression"), EXPRESSIONS.items())
def test_expressions_are_quoted_phrases(query: str, expression: str) -> None:
    """A piece is one phrase: the last lone character is left out, a single one stands for the start of a pair."""
    assert match_expression(parse(query)) == expression


def test_a_loose_expression_asks_for_all_the_pairs() -> None:
    """Where neighbours were not found, the pairs may lie apart; what is excluded stays excluded."""
    query = parse("身份证 -作废")
    assert query.can_loosen
    assert match_expression(query, loose=True) == '("身份" AND "份证") NOT ("作废")'
    assert not parse("connection-reset 广告").can_loosen


def test_a_phrase_takes_the_whole_query_literally() -> None:
    """In phrase mode quotes and minus signs are punctuation."""
    assert match_expression(parse('"a" -b 广告', "phrase")) == '"a b 广告"'


def test_only_cjk_narrows_a_literal_search() -> None:
    """What a literal text says for sure about the tokens of an entry is its CJK runs."""
    assert necessary_expression(parse("mid支付回调 x 码", "text")) == '"支付 付回 回调" AND "码" *'
    assert necessary_expression(parse("latin only", "text")) is None
    assert match_expression(parse("支付", "text")) is None


SPANS: dict[tuple[str, str], list[tuple[int, int]]] = {
    ("广告", "我在改广告SDK，广告"): [(3, 5), (9, 11)],
    ("告SDK", "广告SDK"): [(1, 5)],
    ("哈哈", "哈哈哈哈"): [(0, 4)],
    ("广告", "广告广告"): [(0, 2), (2, 4)],
    ("告", "告告广告"): [(0, 1), (1, 2), (3, 4)],
    ("a a", "a a a a"): [(0, 1), (2, 3), (4, 5), (6, 7)],
    ('"a a"', "a a a a"): [(0, 7)],
    ("cafe", "CAFÉ cafe\u0301 café"): [(0, 4), (5, 10), (11, 15)],
    ("case", "snake_case camelCase"): [(6, 10)],
    ("kelvin", "\u212aelvin"): [(0, 6)],
    ("fox dog", "dog fox"): [(0, 3), (4, 7)],
    ("foo.bar", "foo bar, foo-bar, foobar"): [(0, 7), (9, 16)],
    ("x", "e\u0301x ex x"): [(7, 8)],
    ("nothing", "else"): [],
}


@pytest.mark.parametrize(("query", "text"), SPANS)
def test_spans(query: str, text: str) -> None:
    """Matches are code points of the text as it is; instances that overlap are one span, neighbours are two."""
    assert spans(text, parse(query)) == SPANS[query, text]


def test_spans_of_parts_and_of_literal_text() -> None:
    """A loose match shows its pairs; a literal one shows the text wherever it stands, in any case."""
    assert spans("身份登记；股份证明", parse("身份证"), loose=True) == [(0, 2), (6, 8)]
    assert spans("A  FOOBAR foobar", parse("a foob", "text")) == [(0, 7)]
    assert spans("xfoobar", parse("oba", "text")) == [(3, 6)]


def test_lower_case_keeps_the_places_of_a_plain_text() -> None:
    """What a text holds beside ASCII words, if it holds no others, stays as long in lower case, and no letter."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    plain = [one for one in characters if tokenizer._is_plain(one) and not one.isascii()]
    assert len(plain) > 20_000
    assert [one for one in plain if len(one.lower()) != 1 or one.lower().isascii()] == []
