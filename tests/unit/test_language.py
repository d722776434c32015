"""Which language a reader is told in, and how a sentence is looked up."""

from __future__ import annotations

import asyncio

import pytest

from sessiongraph_web import language, wording


@pytest.mark.parametrize(
    ("accepted", "spoken"),
    [
        ("", "en"),
        ("en", "en"),
        ("en-GB,en;q=0.9", "en"),
        ("zh", "zh"),
        ("zh-CN", "zh"),
        ("zh-Hans-CN", "zh"),
        ("zh-TW,zh;q=0.9,en;q=0.8", "zh"),
        ("ZH-cn", "zh"),
        ("fr", "en"),
        ("fr,de;q=0.5", "en"),
        ("fr,zh;q=0.2", "zh"),
        ("en;q=0.3, zh;q=0.7", "zh"),
        ("zh;q=0.3, en;q=0.7", "en"),
        ("zh,en", "zh"),
        ("en,zh", "en"),
        ("zh;q=0.8,en;q=0.8", "zh"),
        ("zh;q=0", "en"),
        ("zh-CN;q=0,zh;q=0.1", "zh"),
        ("*", "en"),
        ("*;q=0.5, zh;q=0.4", "en"),
        ("*, en;q=0", "zh"),
        ("*;q=0", "en"),
        ("zh ; q=0.9 , en ; q=1.0", "en"),
        ("zh;q=2, en;q=0.1", "en"),
        ("zh;q=nonsense", "en"),
        ("zhx", "en"),
        ("z\u4e2dh", "en"),
        ("," * 5000 + "zh", "en"),
        ("zh" + ";q=1" * 5000, "en"),
    ],
)
def test_the_language_of_a_browser(accepted: str, spoken: str) -> None:
    """The best liked of the languages that there are, whatever region or script; English where none is liked."""
    assert language.chosen(accepted) == spoken


@pytest.mark.parametrize(
    ("kept", "spoken"), [("en", "en"), ("zh", "zh"), ("fr", "zh"), ("", "zh"), (None, "zh"), ("zh-CN", "zh")]
)
def test_a_choice_beats_the_browser(kept: str | None, spoken: str) -> None:
    """What a reader chose before counts, if it is one of the languages."""
    assert language.chosen("zh-CN", kept) == spoken


@pytest.mark.parametrize(
    ("environment", "spoken"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "fr:en"}, "en"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh"}, "en"),
        ({"LANG": "", "LC_ALL": ""}, "en"),
    ],
)
def test_the_language_of_a_terminal(environment: dict[str, str], spoken: str) -> None:
    """The variables that gettext reads, in its order."""
    assert language.of_environment(environment) == spoken


def test_a_language_is_spoken_for_a_block() -> None:
    """It ends with the block, whatever happens in it; what is not offered is English."""
    with language.spoken("zh"), pytest.raises(ZeroDivisionError), language.spoken("en"):
        assert language.gettext("Timeline") == "Timeline"
        raise ZeroDivisionError
    with language.spoken("zh"):
        assert language.gettext("Timeline") == "时间线"
        with language.spoken("xx"):
            assert language.current() == "en"
        assert language.current() == "zh"
    assert language.current() == "en"


def test_requests_at_once_speak_each_its_own() -> None:
    """A request's language is that of its task, and of the threads that work for it."""

    async def say(spoken: str) -> list[str]:
        with language.spoken(spoken):
            said = [language.gettext("Status")]
            await asyncio.sleep(0)
            return [*said, await asyncio.to_thread(language.gettext, "Status")]

    async def both() -> list[list[str]]:
        return await asyncio.gather(say("zh"), say("en"))

    assert asyncio.run(both()) == [["状态", "状态"], ["Status", "Status"]]


def test_counts_agree_with_their_noun() -> None:
    """One thing is one thing, everything else are things; in Chinese there is one form."""

    def said() -> list[str]:
        return [language.ngettext("%(num)s turn", "%(num)s turns", number) for number in (0, 1, 1234)]

    assert said() == ["0 turns", "1 turn", "1\u202f234 turns"]
    with language.spoken("zh"):
        assert said() == ["0 轮", "1 轮", "1\u202f234 轮"]


def test_what_no_catalogue_knows_is_said_as_it_is() -> None:
    """No text is taken for a format or for the catalogue's own head."""
    with language.spoken("zh"):
        assert [language.gettext(text) for text in ("", "100 %", "%(no)s")] == ["", "100 %", "%(no)s"]
        assert language.pgettext("nowhere", "Timeline") == "Timeline"


def test_numbers_times_and_days_in_chinese() -> None:
    """A duration, a size, a day are said as a Chinese reader expects."""
    with language.spoken("zh"):
        assert wording.duration(40) == "40 毫秒"
        assert wording.duration(3_240) == "3.2 秒"
        assert wording.duration(7_500_000) == "2 小时 5 分钟"
        assert wording.duration(273_600_000) == "3 天 4 小时"
        assert wording.long_day(wording.date(2026, 11, 22)) == "2026年11月22日 星期日"
        assert wording.day_and_time(wording.datetime(2026, 5, 3, 9, 4)) == "5月3日 09:04"
