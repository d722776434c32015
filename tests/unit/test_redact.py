"""Masking: what must never leave, what must stay readable, and what happens when masking fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import redact
from sessiongraph_web.redact import WITHHELD, mask, mask_value

_DATA = json.loads((Path(__file__).parents[1] / "data" / "secrets.json").read_text())
# A secret is stored in pieces, so that no scanner takes this repository for a leak.
_SECRETS = [(row["kind"], row["around"], "".join(row["secret"])) for row in _DATA["secrets"]]
_GITHUB = "gh" + "p_" + "a1B2c3D4" * 5


@pytest.mark.parametrize(("kind", "around", "secret"), _SECRETS)
def test_a_secret_is_masked_and_its_surroundings_stay(kind: str, around: str, secret: str) -> None:
    """Exactly the secret is replaced by the name of its kind, once, and masking again changes nothing."""
    masked, count = mask(around.replace("{}", secret))

    assert (masked, count) == (around.replace("{}", f"[masked:{kind}]"), 1)
    assert mask(masked) == (masked, 0)


@pytest.mark.parametrize("text", _DATA["lookalikes"])
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    """Hashes, prose, code and placeholders are left as they are."""
    assert mask(text) == (text, 0)


def test_several_secrets_in_one_text_are_all_masked() -> None:
    """Secrets of different kinds are masked side by side in a long text."""
    filler = "line of ordinary output, 200 OK\n" * 500
    secrets = [(kind, around.replace("{}", secret)) for kind, around, secret in _SECRETS if around == "{}"]
    text = filler.join(["", *(whole + "\n" for _, whole in secrets), ""])

    masked, count = mask(text)

    assert count == len(secrets)
    assert not [kind for kind, whole in secrets if whole in masked]


@pytest.mark.parametrize("around", ["API_KEY={}", 'api_key = "{}"', "--token {} x", "Authorization: Bearer {}"])
def test_no_rest_of_a_long_secret_remains(around: str) -> None:
    """A secret is masked whole, however long it is."""
    masked, count = mask(around.replace("{}", "k9Q2" * 1000))

    assert (count, "k9Q2" in masked) == (1, False)


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ",
        "your",
        "password: ",
        'token="',
        "token='x\"",
        "token =  ",
        "-----BEGIN RSA PRIVATE KEY-----",
        "sk-",
        "0m",
        "-----END RSA PRIVATE KEY-----",
        "postgres://a:b",
        "<password>",
        '\\"',
        "=",
        "SG.",
        "密码：",
        "-u a:",
        " ",
        "x",
    ],
)
@pytest.mark.parametrize("before", ["", "API_KEY=", f"{_GITHUB} "])
def test_no_text_makes_masking_slow(unit: str, before: str) -> None:
    """Texts made to lead patterns astray are masked in a time that grows no faster than they do."""
    text = before + unit * (50_000 // len(unit))
    masked, _ = mask(text)

    assert _GITHUB not in masked
    assert mask(masked) == (masked, 0)


def test_one_secret_that_ran_into_another_is_masked_too() -> None:
    """What masking one secret bares is masked in the same call."""
    text = "AKIA" + "EXAMPLEEXAMPLE01" + "sk_" + "test_" + "aB3dE6gH9jK2mN5pQ8rS1tU4"

    assert mask(text) == ("[masked:aws-key-id][masked:stripe-key]", 2)


def test_a_text_that_cannot_be_masked_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a rule costs the text, never the secret."""

    def fail(text: str) -> object:
        raise RuntimeError(text)

    monkeypatch.setattr(redact, "is_suspect", fail)

    assert mask("harmless") == (WITHHELD, 1)
    assert mask_value({"a": ["harmless"], "a long name": 1}) == ({"a": [WITHHELD], WITHHELD: 1}, 2)


def test_nothing_of_a_value_remains_when_it_cannot_be_walked() -> None:
    """A value too deep to walk is withheld whole."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert mask_value(deep) == (WITHHELD, 1)


def test_every_string_of_a_value_is_masked() -> None:
    """Strings in lists, objects and keys are masked; other values and key order stay."""
    value = {"n": 1, "list": [None, True, f"x {_GITHUB}"], _GITHUB: {"deep": _GITHUB}}
    marker = "[masked:github-token]"

    assert mask_value(value) == ({"n": 1, "list": [None, True, f"x {marker}"], marker: {"deep": marker}}, 3)


def test_keys_that_mask_alike_stay_apart() -> None:
    """No member is lost when two keys become the same text."""
    other = "gh" + "p_" + "z9Y8x7W6" * 5

    masked, count = mask_value({_GITHUB: 1, other: 2})

    assert (masked, count) == ({"[masked:github-token]": 1, "[masked:github-token]*": 2}, 2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": "hunter2"}, ({"password": "[masked:assignment]"}, 1)),
        ({"env": {"DB_PASSWORD": "hunter2"}}, ({"env": {"DB_PASSWORD": "[masked:assignment]"}}, 1)),
        ({"apiKey": "k9" * 8}, ({"apiKey": "[masked:assignment]"}, 1)),
        ({"password": "string"}, ({"password": "string"}, 0)),
        ({"token": "access_token"}, ({"token": "access_token"}, 0)),
        ({"inputTokens": "12345678"}, ({"inputTokens": "12345678"}, 0)),
        ({"password": "Please enter your password"}, ({"password": "Please enter your password"}, 0)),
    ],
)
def test_a_value_is_masked_for_the_name_of_its_key(value: Any, expected: Any) -> None:
    """In decoded JSON the name and the secret are different strings; the name still decides."""
    assert mask_value(value) == expected


def test_a_stream_that_spells_a_secret_in_pieces_is_withheld() -> None:
    """No piece of a streamed secret remains, whether packed or single; a stream without one stays as it is."""
    packed = {"type": "text-chunks", "index": 0, "dt": [1], "texts": [_GITHUB[:3], _GITHUB[3:]]}
    single = [
        {"type": "chunk", "chunk": {"type": "text-delta", "text": part}} for part in (_GITHUB[:9], _GITHUB[9:])
    ]
    harmless = [{"type": "text-chunks", "index": 0, "dt": [1], "texts": ["hel", "lo"]}]

    assert mask_value({"stream": [packed]}) == ({"stream": []}, 1)
    assert mask_value({"stream": single}) == ({"stream": []}, 1)
    assert mask_value({"stream": harmless}) == ({"stream": harmless}, 0)


def test_pieces_whose_neighbours_are_other_records_are_withheld() -> None:
    """A packed row or a single delta of generation 0 may hold half a secret, so its text does not leave."""
    row = {"type": "text-chunks", "seq0": 3, "data": {"turn": 1, "dt": [1], "texts": ["gh", "p_"]}}
    delta = {"type": "assistant/chunk", "data": {"chunk": {"type": "text-delta", "index": 0, "text": "gh"}}}

    assert mask_value(row) == ({**row, "data": {"turn": 1, "dt": [1], "texts": [WITHHELD]}}, 1)
    assert mask_value(delta) == (
        {"type": "assistant/chunk", "data": {"chunk": {"type": "text-delta", "index": 0, "text": WITHHELD}}},
        1,
    )
