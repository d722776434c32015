"""The kinds of secrets that are known by their own shape, and the cheap scan that tells which texts may hold any.

Most text holds nothing like a secret and is passed by `is_suspect`, which skips from one rare character to the
next; what it flags meets the rules. So a rule must never match a text that `is_suspect` passes.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sessiongraph_web.assignments import AFTER_NAME, GAP, has_digit, is_real

MAX_PEM_CHARS: Final = 32 * 1024  # how far a private key reaches from its first or last line


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret. Some needle is in every text that `pattern` matches; group `secret` of a match, or all
    of it where there is no such group, is replaced if `is_secret` agrees."""

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool] | None = None


def is_suspect(text: str) -> object:
    """Return something true for a text that may hold a secret of any kind."""
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


def private_keys(text: str) -> Iterator[tuple[int, int]]:
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


def _is_basic_credential(match: re.Match[str]) -> bool:
    """Say whether base64 text decodes to `user:password`."""
    try:
        decoded = base64.b64decode(match["secret"] + "=" * (-len(match["secret"]) % 4), validate=True)
    except binascii.Error:
        return False
    return b":" in decoded and decoded.isascii()


def _is_flag_value(match: re.Match[str]) -> bool:
    return is_real("token", match["secret"], "quoted")


def _is_authorization(match: re.Match[str]) -> bool:
    return match["scheme"] is not None or has_digit(match["secret"])


def _is_real_password(match: re.Match[str]) -> bool:
    return not _PLACEHOLDER_IN_URL.fullmatch(match["secret"])


_END: Final = r"(?![A-Za-z0-9])"
_DATABASES: Final = (
    r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|rediss|amqps?|mssql|clickhouse|sqlserver|oracle)"
)


def _rule(
    name: str, needles: str, pattern: str, is_secret: Callable[[re.Match[str]], bool] | None = None
) -> Rule:
    return Rule(name, tuple(needles.split()), re.compile(pattern, re.ASCII), is_secret)


def _starting(literal: str, before: str = "[A-Za-z0-9]") -> str:
    """Return a pattern for a literal where a token may start: searched for fast, then looked back from.

    Before it stands no letter or digit but one that ends an escape or a colour code: `\\n`, `%3D`, `\\x1b[32m`.
    """
    skip = "." * len(literal)
    escapes = (r"\\[abfnrtv]", r"[\[;][0-9]m", r"[\[;][0-9]{2}m", r"\[m", r"%[0-9A-F]{2}")
    after = "|".join(f"(?<={escape}{skip})" for escape in escapes)
    return f"{re.escape(literal)}(?:(?<!{before}{skip})|{after})"


RULES: Final = (
    _rule("jwt", "eyJ", _starting("eyJ", r"[\w-]") + r"[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){1,3}"),
    _rule("aws-key-id", "AKIA ASIA", _starting("A") + r"[KS]IA[A-Z0-9]{16}" + _END),
    _rule("aliyun-key-id", "LTAI", _starting("LTAI") + r"[A-Za-z0-9]{12,}"),
    _rule("tencent-key-id", "AKID", _starting("AKID") + r"[A-Za-z0-9]{32}"),
    _rule("google-key", "AIza", _starting("AIza") + r"[\w-]{35,}"),
    _rule("google-oauth-secret", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _rule("azure-sas", "sig=", r"(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%/+_-]{40,}={0,2})"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{16,}\w*"),
    _rule("github-token", "github_pat_", r"github_pat_[A-Za-z0-9]{16,}\w*"),
    _rule("gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glsoat-", r"gl(?:pat|dt|rt|ptt|cbt|soat)-[\w-]{20,}"),
    _rule(
        "atlassian-token", "ATBB ATATT ATCTT", _starting("AT") + r"(?:BB[A-Za-z0-9]{28,}|[AC]TT3xFfG[\w=-]{20,})"
    ),
    _rule("npm-token", "npm_", _starting("npm_") + r"[A-Za-z0-9]{30,}"),
    _rule("pypi-token", "pypi-", r"pypi-[\w-]{40,}"),
    _rule("docker-token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9]{8}[\w-]{12,}"),
    _rule("hugging-face-token", "hf_", _starting("hf_") + r"[A-Za-z0-9]{30,}"),
    _rule("model-key", "sk-", _starting("sk-") + r"(?:ant|proj|svcacct|admin|or|lf)-[\w-]{20,}"),
    _rule("model-key", "sk-", _starting("sk-", "[A-Za-z0-9-]") + r"[A-Za-z0-9]{20,}[\w-]*"),
    _rule("model-key", "gsk_ xai-", r"(?:gsk_|xai-)[A-Za-z0-9]{40,}"),
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
    _rule("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _rule("webhook-secret", "whsec_", r"whsec_[A-Za-z0-9]{16,}[A-Za-z0-9+/]*={0,2}"),
    _rule("twilio-key", "SK", _starting("SK") + r"[0-9a-f]{32}" + _END),
    _rule("sendgrid-key", "SG.", _starting("SG.") + r"[\w-]{16,}\.[\w-]{16,}"),
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
_PLACEHOLDER_IN_URL: Final = re.compile(
    r"\$\{.*|\$[A-Z_]+|<.*>|\{.*\}|%\(?\w+\)?s|[xX*.•·]+|\[masked:.*", re.DOTALL
)


def _scan(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.VERBOSE).search


# Each begins with one literal, to which the engine skips several times faster than to any set of characters.
_AT_EQUALS: Final = _scan(rf"={AFTER_NAME}")
_AT_COLON: Final = _scan(rf""":{AFTER_NAME}|:(?://(?:hooks\.slack|[^\s"'`<>]{{1,600}}@)|AA[\w-]{{32}})""")
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
_AT_GREATER: Final = _scan(f">{AFTER_NAME}")
_AT_K: Final = _scan(r"K(?:(?<=AK)I[AD]|(?<=SK)[0-9a-f]{32})")
_AT_I: Final = _scan(r"I(?:(?<=AI)za|(?<=ASI)A|(?<=LTAI))")
_AT_B: Final = _scan(r"B(?:earer|EARER|asic|ASIC|(?<=ATB)B)")
_AT_G: Final = _scan(r"G(?:\.(?<=S..)|(?<=3xFfG))")
_AT_SECRET_CHINESE: Final = _scan(rf"密[码钥]{GAP}{{0,40}}[:=：]")
_AT_COMMAND_CHINESE: Final = _scan(rf"令(?:(?<=口令)|牌){GAP}{{0,40}}[:=：]")
_AT_J: Final = _scan(r"J(?<=eyJ)[\w-]{8}")
