"""Masking of secrets in text and in decoded JSON: the rules, and the cheap scan in front of them.

Most text holds nothing like a secret and is passed by `_SUSPECT`, one scan that stops only at rare characters;
what it flags meets the rules. So a rule must never match where `_SUSPECT` matches nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

REDACTION_VERSION: Final = 1
WITHHELD: Final = "[masked:withheld]"  # stands for a text that could not be masked
MIN_CHARS: Final = 7  # nothing shorter holds both a secret and what tells it
MAX_KEYS: Final = 4096  # keys whose masking is remembered: logs use few
MAX_NAME_CHARS: Final = 64  # how far before a sign the name of a value is looked for
MAX_PEM_CHARS: Final = 32 * 1024  # how far a private key reaches from its first or last line

Style = Literal["quoted", "exported", "bare"]  # how a value is written: "v", NAME=v, name: v


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret. Some needle is in every text that `pattern` matches; group `secret` of a match, or all
    of it where there is no such group, is replaced if `is_secret` agrees."""

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool] | None = None


def mask(text: str) -> tuple[str, int]:
    """Return the text with every known secret replaced by `[masked:<kind>]`, and how many were.

    Masking twice changes nothing more. If masking fails, the whole text is withheld and counts as one.
    """
    try:
        if len(text) < MIN_CHARS or not _is_suspect(text):
            return text, 0
        return _mask(text)
    except Exception:  # noqa: BLE001 - whatever went wrong, nothing unmasked may leave
        return WITHHELD, 1


def mask_value(value: Any) -> tuple[Any, int]:
    """Return decoded JSON with every string in it masked, keys too, and how many secrets were replaced.

    A string under a key like `password` is masked for its key. The pieces of a streamed text may each hold a part
    of a secret: they are withheld where their whole holds one, and where their neighbours are in other records.
    """
    try:
        return _mask_value(value)
    except Exception:  # noqa: BLE001 - as above
        return WITHHELD, 1


def _mask(text: str) -> tuple[str, int]:
    total = 0
    for rule in _RULES:
        for needle in rule.needles:
            if needle in text:
                text, count = _apply(rule, text)
                total += count
                break
    for name, find in (("private-key", _private_keys), ("assignment", _assignments)):
        text, count = _replace(text, list(find(text)), name)
        total += count
    return text, total


def _apply(rule: Rule, text: str) -> tuple[str, int]:
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    matches = rule.pattern.finditer(text)
    spans = [m.span(group) for m in matches if rule.is_secret is None or rule.is_secret(m)]
    return _replace(text, spans, rule.name)


def _replace(text: str, spans: list[tuple[int, int]], name: str) -> tuple[str, int]:
    if not spans:
        return text, 0
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], f"[masked:{name}]"]
        done = end
    return "".join([*pieces, text[done:]]), len(spans)


def _mask_value(value: Any) -> tuple[Any, int]:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return _mask_object(value)
    if isinstance(value, list):
        masked = [_mask_value(item) for item in value]
        return [item for item, _ in masked], sum(count for _, count in masked)
    return value, 0


def _mask_object(value: dict[Any, Any]) -> tuple[dict[Any, Any], int]:
    result: dict[Any, Any] = {}
    total = 0
    for key, item in value.items():
        shown, count = _mask_key(key) if isinstance(key, str) else (key, 0)
        while count and shown in result:
            shown += "*"
        total += count
        if isinstance(item, str | dict | list):
            item, count = _mask_member(value, key, item)
            total += count
        result[shown] = item
    return result, total


@lru_cache(MAX_KEYS)
def _mask_key(key: str) -> tuple[str, int]:
    return mask(key)


def _mask_member(parent: dict[Any, Any], key: Any, item: Any) -> tuple[Any, int]:
    if isinstance(item, str):
        if key != "type" and str(parent.get("type")).endswith("-delta") and item:
            return WITHHELD, 1
        name = _secret_name(key) if isinstance(key, str) else None
        if name and not any(c.isspace() for c in item) and _is_real(name, item, "quoted"):
            return "[masked:assignment]", 1
    if isinstance(item, list) and item:
        if key == "stream":
            return ([], 1) if _hides_secret(item) else (item, 0)
        if key in _PIECES and "dt" in parent:
            return [WITHHELD], 1
    return _mask_value(item)


@lru_cache(MAX_KEYS)
def _secret_name(key: str) -> str | None:
    """Return the part of a key that names a secret, in lower case."""
    name = _NAME.search(key)
    return name[0].lower() if name else None


def _hides_secret(stream: list[Any]) -> bool:
    """Say whether a stream, its pieces joined or each alone, holds a secret."""
    pieces: dict[str, list[str]] = defaultdict(list)
    _collect(pieces, "", stream)
    return any(mask("".join(texts))[1] or mask("\n".join(texts))[1] for texts in pieces.values())


def _collect(pieces: dict[str, list[str]], key: str, values: list[Any]) -> None:
    """Add every string inside the values, in order, to the pieces under its key."""
    for value in values:
        if isinstance(value, str):
            pieces[key].append(value)
        elif isinstance(value, list):
            _collect(pieces, key, value)
        elif isinstance(value, dict):
            for name, item in value.items():
                if isinstance(item, str | dict):
                    _collect(pieces, name, [item])
                elif isinstance(item, list):
                    _collect(pieces, name, item)


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of PEM private keys: whole blocks, and what is left of those that were cut off."""
    done = 0
    for border in _PEM_BORDER.finditer(text):
        if border.start() < done:
            continue
        if border["side"] == "END":
            start = _pem_body_before(text, done, border.start())
            done = border.end()
        else:
            start = border.start()
            done = _pem_end(text, border)
        if start < border.start() or done > border.end():
            yield start, done


def _pem_end(text: str, begin: re.Match[str]) -> int:
    """Return where the block ends: at its last line if that comes before another block begins."""
    limit = begin.end() + MAX_PEM_CHARS
    following = _PEM_BORDER.search(text, begin.end(), limit)
    if following and following["side"] == "END":
        return following.end()
    body = _PEM_BODY.match(text, begin.end(), limit)
    return body.end() if body else begin.end()


def _pem_body_before(text: str, floor: int, end: int) -> int:
    """Return where the base64 lines before a block's last line begin; `end` if there are none."""
    before = text[max(floor, end - MAX_PEM_CHARS) : end]
    body = before[len(before.rstrip(_BASE64 + " \t\r\n\\")) :]
    return end - len(body) if _BASE64_RUN.search(body) else end


def _assignments(text: str) -> Iterator[tuple[int, int]]:
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


def _value_span(text: str, name: str, value: re.Match[str]) -> tuple[int, int]:
    """Return where the secret is in a value, or an empty span."""
    if value["quoted"] is not None:
        start, end = value.span("quoted")
        style: Style = "quoted"
    else:
        start, end = value.span("bare")
        style = "exported" if name.isupper() and value["sign"] == "=" else "bare"
        if style == "bare":
            end = start + len(_BARE_END.split(value["bare"], maxsplit=1)[0])
            if text[end : end + 1] in ("(", "["):
                return start, start
    return (start, end) if _is_real(name.lower(), text[start:end], style) else (start, start)


def _is_real(name: str, value: str, style: Style) -> bool:
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
        return is_password or _has_digit(value) or (len(value) >= 16 and value.isalpha())
    return not _IDENTIFIER.match(value) and len(value) >= 6 and (_mixed(value) or len(value) >= 20)


def _mixed(value: str) -> bool:
    return _has_digit(value) and any(c.isalpha() for c in value)


def _has_digit(value: str) -> bool:
    return any(c.isdigit() for c in value)


def _is_basic_credential(match: re.Match[str]) -> bool:
    """Say whether base64 text decodes to `user:password`."""
    try:
        decoded = base64.b64decode(match["secret"] + "=" * (-len(match["secret"]) % 4), validate=True)
    except binascii.Error:
        return False
    return b":" in decoded and decoded.isascii()


def _is_flag_value(match: re.Match[str]) -> bool:
    return _is_real("token", match["secret"], "quoted")


def _is_authorization(match: re.Match[str]) -> bool:
    return match["scheme"] is not None or _has_digit(match["secret"])


def _is_real_password(match: re.Match[str]) -> bool:
    return not _PLACEHOLDER_IN_URL.fullmatch(match["secret"])


# A token may follow an escape or a colour code that ends in a letter: `\nsk-…`, `\x1b[32msk-…`, `%3Dsk-…`.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[abfnrtv])|(?<=[0-9\[]m)|(?<=%[0-9A-F][0-9A-F]))"
_END: Final = r"(?![A-Za-z0-9])"
_DATABASES: Final = (
    r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|rediss|amqps?|mssql|clickhouse|sqlserver|oracle)"
)


def _rule(
    name: str, needles: str, pattern: str, is_secret: Callable[[re.Match[str]], bool] | None = None
) -> Rule:
    return Rule(name, tuple(needles.split()), re.compile(pattern, re.ASCII), is_secret)


_RULES: Final = (
    _rule("jwt", "eyJ", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){1,3}"),
    _rule("aws-key-id", "AKIA ASIA", _START + r"A[KS]IA[A-Z0-9]{16}" + _END),
    _rule("aliyun-key-id", "LTAI", _START + r"LTAI[A-Za-z0-9]{12,}"),
    _rule("tencent-key-id", "AKID", _START + r"AKID[A-Za-z0-9]{32}"),
    _rule("google-key", "AIza", _START + r"AIza[\w-]{35,}"),
    _rule("google-oauth-secret", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _rule("azure-sas", "sig=", r"(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%/+_-]{40,}={0,2})"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{16,}\w*"),
    _rule("github-token", "github_pat_", r"github_pat_[A-Za-z0-9]{16,}\w*"),
    _rule("gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glsoat-", r"gl(?:pat|dt|rt|ptt|cbt|soat)-[\w-]{20,}"),
    _rule("atlassian-token", "ATBB ATATT ATCTT", _START + r"AT(?:BB|ATT|CTT)[\w=-]{28,}"),
    _rule("npm-token", "npm_", _START + r"npm_[A-Za-z0-9]{30,}"),
    _rule("pypi-token", "pypi-", r"pypi-[\w-]{40,}"),
    _rule("docker-token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9]{8}[\w-]{12,}"),
    _rule("hugging-face-token", "hf_", _START + r"hf_[A-Za-z0-9]{30,}"),
    _rule("model-key", "sk-", _START + r"sk-(?:ant|proj|svcacct|admin|or|lf)-[\w-]{20,}"),
    _rule("model-key", "sk-", _START + r"(?<!-)sk-[A-Za-z0-9]{20,}[\w-]*"),
    _rule("model-key", "gsk_ xai-", _START + r"(?:gsk_|xai-)[A-Za-z0-9]{40,}"),
    _rule(
        "slack-token",
        "xoxa- xoxb- xoxp- xoxr- xoxs- xoxe- xoxc- xoxd- xapp-",
        r"(?:xox[abceprsd]|xapp)-[\w%-]{10,}",
    ),
    _rule(
        "slack-webhook",
        "hooks.slack.com",
        r"(?<=://hooks\.slack\.com/)(?P<secret>(?:services|workflows)/[\w/-]{20,})",
    ),
    _rule("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", _START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _rule("webhook-secret", "whsec_", r"whsec_[A-Za-z0-9]{16,}[A-Za-z0-9+/]*={0,2}"),
    _rule("twilio-key", "SK", _START + r"SK[0-9a-f]{32}" + _END),
    _rule("sendgrid-key", "SG.", _START + r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _rule("telegram-token", ":AA", r"(?<![0-9])[0-9]{8,10}:AA[\w-]{32,}"),
    _rule(
        "service-token",
        "shpat_ shpss_ shpca_ shppa_ sbp_ glsa_ r8_ doo_v1_ dop_v1_ dor_v1_ lin_api_ ntn_",
        r"(?:shp(?:at|ss|ca|pa)|sbp|glsa|r8|do[opr]_v1|lin_api|ntn)_[A-Za-z0-9]{30,}\w*",
    ),
    _rule("bearer-token", "Bearer BEARER", r"B(?i:earer)(?:\s|%20){1,4}(?P<secret>[\w.~+/-]{16,}={0,2})"),
    _rule(
        "basic-credential",
        "Basic BASIC",
        r"B(?i:asic)\s{1,4}(?P<secret>[A-Za-z0-9+/]{6,}={0,2})",
        _is_basic_credential,
    ),
    _rule(
        "authorization",
        "uthorization UTHORIZATION",
        r"""(?i:authorization)["'`\\]{0,4}\s{0,4}[:=]\s{0,4}(?:\\{0,3}["'`])?"""
        r"(?P<scheme>(?i:token|bearer|basic|apikey|key)\s{1,4})?(?P<secret>[\w.~+/:-]{16,}={0,2})",
        _is_authorization,
    ),
    _rule(
        "password",
        "://",
        rf"""(?i:{_DATABASES}(?:\+\w{{1,16}})?)://[^\s/@:"'`<>]{{0,256}}:(?P<secret>[^\s"'`<>\\]{{1,256}})@(?=[\w.\[*%-])""",
        _is_real_password,
    ),
    _rule(
        "password",
        "://",
        r"""://[^\s/@:"'`<>?#]{0,256}:(?P<secret>[^\s/"'`<>\\?#]{1,256})@(?=[\w.\[*%-])""",
        _is_real_password,
    ),
    _rule(
        "assignment",
        "--",
        r"""(?<![\w-])--[a-z-]{0,40}(?:password|passwd|token|secret|key)[ ]{1,4}["'`]?"""
        r"""(?P<secret>[^\s"'`\\<>$-][^\s"'`\\]{5,})""",
        _is_flag_value,
    ),
    _rule(
        "password",
        "-u --user",
        r"""(?<![\w-])(?:-u|--user)[ =]["']?(?![0-9]+:[0-9]+\b)[\w.@+-]{1,64}:(?P<secret>[^\s"'`\\@/]{4,})""",
        _is_real_password,
    ),
)

_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_BASE64_RUN: Final = re.compile(r"[A-Za-z0-9+/]{32}")
_PEM_BORDER: Final = re.compile(r"-----(?P<side>BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY: Final = re.compile(
    r"(?:[\s\\]{0,8}(?:[nr]?(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{0,80}|[A-Za-z0-9+/=]{16,}))+"
    r"(?:[\s\\]{0,8}[A-Za-z0-9+/=]+\Z)?"
)
_PIECES: Final = ("texts", "args")  # of a packed row: the pieces of one text that goes on in other rows

_LOOSE_NAMES: Final = frozenset({"key", "auth", "pass", "pwd"})  # these name other things as well
_NAME: Final = re.compile(
    r"(?:(?i:passw(?:or)?d|passphrase|secret|token|credentials?"
    r"|(?:api|access|secret|private|account|client|auth|signing|encryption|master|license)[-_ ]?key)"
    r"|(?<=_)(?:KEY|PASS|PWD|AUTH|auth)|(?<![A-Za-z0-9])(?:[Pp]wd|[Pp]ass)|密码|密钥|口令|令牌)\Z"
)
_VALUE: Final = re.compile(
    r"""(?P<sign>(?::[ \t]{0,4}[A-Za-z][\w.\[\]| ]{0,40})?=(?!=)>?|:=|==|[:：>](?!:))[ \t]{0,40}"""
    r"""(?:(?P<quote>\\{0,3}["'`])(?P<quoted>(?:(?!(?P=quote))[\x21-\x7e]){4,512})(?:(?P=quote)|\Z)"""
    r"""|(?P<bare>(?:[\x21\x23-\x26\x28-\x5b\x5d-\x5f\x61-\x7e]|\\(?![nrt"'`\\])){4,}))"""
)
_BARE_END: Final = re.compile(r"[,;&)(<>}\[\]|]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w]*(?:[.:/-][A-Za-z_]\w*)+\Z|[A-Za-z_]+\d{0,2}\Z|[-+./:_A-Za-z]+\Z")
_PLACEHOLDER: Final = re.compile(
    r"""(?:\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$[A-Za-z_]+|<.*>|<.*|\{.*\}?|%[A-Z_]+%|%\(?\w+\)?s?|\#\{.*|!\w+
    |[xX*.•·\#_?-]+|.*\.\.\.+.*|.*(?:process\.env|os\.environ|getenv|import\.meta).*
    |(?i:(?:your|my|the|some|an?|insert|replace|enter|put|add|fake|dummy|example|sample|placeholder|change|todo|tbd
      |none|null|nil|true|false|undefined|string|str|required|optional|hidden|redacted|masked|secret|password|passwd|token
      |test|foo|bar|bytes|bool|boolean|number|object|any|unknown|value|access|api|user|username|default)
      (?:[-_ ]?[A-Za-z]+)*)
    |(?i:.*[-_]here))\Z""",
    re.VERBOSE,
)
_PLACEHOLDER_IN_URL: Final = re.compile(
    r"\$\{.*|\$[A-Z_]+|<.*>|\{.*\}|%\(?\w+\)?s|[xX*.•·]+|\[masked:.*", re.DOTALL
)

# The ends of names, which decide cheaply. Looking behind needs a fixed width; spelling out the case is faster.
_NAME_END: Final = (
    "(?:[oO][kK][eE][nN]|[cC][rR][eE][tT]|[wW][oO][rR][dD]|[sS][sS][wW][dD]|[-_ isteghnrISTEGHNR][kK][eE][yY]"
    "|[tT][iI][aA][lL]|[iI][aA][lL][sS]|[rR][aA][sS][eE]|[pP][aA][sS][sS]|[^a-z][pP][wW][dD]|[aA][uU][tT][hH]"
    "|(?<=[zZ][aA])[tT][iI][oO][nN]|[?&;]sig)"
)
_LAST_TWO: Final = "(?:[eErR][nNtTdDyY]|[wW][dD]|[oO][nN]|[aA][lL]|[lL][sS]|[sS][eEsS]|[tT][hH]|ig)"
_GAP: Final = r"""["'`\\\ \t]"""
# An identifier after white space is code or prose, not a value; but `name: type = value` may be one.
_NO_CODE: Final = r"(?![ \t]+(?!(?i:bearer|token|basic|apikey|key)[ ])[A-Za-z_.]+(?:[,;()\n]|\Z|[ \t]+[^=\s]))"
_AFTER_NAME: Final = rf"""(?:
    (?<={_LAST_TWO}.)(?<={_NAME_END}.)
  | (?<={_GAP}.)(?:
      (?<={_LAST_TWO}..)(?<={_NAME_END}..)
    | (?<={_GAP}..)(?:
        (?<={_NAME_END}...)|(?<=\\["'`]\ .)(?<={_NAME_END}....)
      | (?<=\s\s.)|(?<=\\\\["'`].)|(?<=\\\\["'`]\ .)
      )
    )
){_NO_CODE}"""
_ASSIGN_SIGN: Final = re.compile(
    f"[=:>]{_AFTER_NAME}|[=:：](?:(?<=[码钥令牌].)|(?<=[码钥令牌]{_GAP}.)|(?<=\\A[Pp]wd.)|(?<=\\A[Pp]wd{_GAP}.))",
    re.VERBOSE,
)


def _scan(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.VERBOSE).search


# Each begins with one literal, to which the engine skips several times faster than to any set of characters.
_AT_EQUALS: Final = _scan(rf"={_AFTER_NAME}|=[0-9A-F]{{8}}(?<=[\w-]{{20}}.{{9}})")
_AT_COLON: Final = _scan(
    rf""":(?<=[nNtTdDyYlLsSeEhHgG"'`\\\ \t].){_AFTER_NAME}|:(?://(?:hooks\.slack|[^\s"'`<>]{{1,600}}@)|AA[\w-]{{32}})"""
)
_AT_LOW_LINE: Final = _scan(r"_[A-Za-z0-9]{8}(?:[A-Za-z0-9]{8}|(?<=dckr_pat_.{8}))")
_AT_HYPHEN: Final = _scan(
    r"""-(?:
      [\w-]{16}(?:(?<=sk-.{16})|(?<=t-.{16})|(?<=pypi-.{16})|(?<=SPX-.{16})|(?<=xai-.{16}))
    | [\w%-]{10}(?:(?<=xox[abceprsd]-.{10})|(?<=xapp-.{10}))
    | (?:BEGIN|END)\ [A-Z0-9 ]{0,40}PRIVATE
    | (?:u|user)[ =]["']?[\w.@+-]{1,64}:
    | [a-z-]{0,40}(?:password|passwd|token|secret|key)[ ]
    )"""
)
_AT_GREATER: Final = _scan(f">{_AFTER_NAME}")
_AT_K: Final = _scan(r"K(?:(?<=AK)I[AD]|(?<=SK)[0-9a-f]{32})")
_AT_I: Final = _scan(r"I(?:(?<=AI)za|(?<=ASI)A|(?<=LTAI))")
_AT_B: Final = _scan(r"B(?:earer|EARER|asic|ASIC|(?<=ATB)B)")
_AT_G: Final = _scan(r"G\.(?<=S..)")
_AT_SECRET_CHINESE: Final = _scan(rf"密[码钥]{_GAP}{{0,40}}[:=：]")
_AT_COMMAND_CHINESE: Final = _scan(rf"令(?:(?<=口令)|牌){_GAP}{{0,40}}[:=：]")
_AT_J: Final = _scan(r"J(?<=eyJ)[\w-]{8}")


def _is_suspect(text: str) -> object:
    return (
        _AT_EQUALS(text)
        or _AT_COLON(text)
        or _AT_LOW_LINE(text)
        or _AT_HYPHEN(text)
        or ("I" in text and _AT_I(text))
        or ("B" in text and _AT_B(text))
        or ("K" in text and _AT_K(text))
        or ("J" in text and _AT_J(text))
        or ("G" in text and _AT_G(text))
        or (">" in text and _AT_GREATER(text))
        or text.startswith(("pwd", "Pwd"))
        or (not text.isascii() and (_AT_SECRET_CHINESE(text) or _AT_COMMAND_CHINESE(text)))
    )
