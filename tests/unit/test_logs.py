"""The store and its logs: what is found, where reading may resume, and what it costs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sessiongraph_web import logs, schema
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.models import Event, Fault, FrameEnd, Header, Resume, Unit
from tests.builders import Log, blocks, compress, line, skippable

BOTH = pytest.mark.parametrize("detail", ["full", "index"])
STORED = pytest.mark.parametrize("compressed", [True, False])


def _seqs(units: list[Unit]) -> list[int | None]:
    return [unit.seq for unit in units if isinstance(unit, Event)]


def _codes(units: list[Unit]) -> list[str]:
    return [unit.code for unit in units if isinstance(unit, Fault)]


@pytest.mark.parametrize(
    ("cwd", "key"),
    [
        ("/home/dev/projects/alpha", "--home-dev-projects-alpha--"),
        ("/home/dev/my project (v2)", "--home-dev-my~0020project~0020~0028v2~0029--"),
        ("/p/项目-中文/子目录", "--p-~9879~76EE-~4E2D~6587-~5B50~76EE~5F55--"),
        ("/café ☕ 😀~tilde.d", "--caf~00E9~0020~2615~0020~D83D~DE00~007Etilde.d--"),
        ("/", "--root--"),
        ("C:\\Users\\me\\proj", "--C-Users-me-proj--"),
        ("\\\\server\\share\\x", "--server-share-x--"),
        ("/a-b", "--a-b--"),
        ("/a/b", "--a-b--"),
        ("/a//b/", "--a-b---"),
        ("/" + "x" * 300, "--" + "x" * 251 + "--"),
        ("/" + "x" * 249 + "é", "--" + "x" * 249 + "~0--"),
    ],
)
def test_project_key(cwd: str, key: str) -> None:
    """A project folder is named after the cwd's UTF-16 units, many cwds to one name."""
    assert logs.project_key(cwd) == key


@pytest.mark.parametrize(
    ("identity", "folder"),
    [
        ("session-1_a.b", "session-1_a.b"),
        ("weird id/../with~特殊😀", "weird~0020id~002F..~002Fwith~007E~7279~6B8A~D83D~DE00"),
        (".", "~002E"),
        ("..", "~002E~002E"),
        ("a:b", "a~003Ab"),
    ],
)
def test_folder_name(identity: str, folder: str) -> None:
    """A session's folder is named after its id, so that no id leaves its place."""
    assert logs.folder_name(identity) == folder


def test_discovery_finds_every_log_once(store: Path) -> None:
    """One log a folder, sorted by place, with what a stat tells."""
    first, second = Log("/w/a", id="one").write(store), Log("/w/b", id="two").write(store, compressed=False)
    found = logs.discover(store)
    facts = first.stat()
    assert found.logs[0] == logs.LogFile(
        path=first,
        relative="--w-a--/one/session.v4.jsonl.zstd",
        log_id=schema.log_id(b"--w-a--/one/session.v4.jsonl.zstd"),
        project_key="--w-a--",
        folder="one",
        version=4,
        compressed=True,
        size=facts.st_size,
        mtime_ns=facts.st_mtime_ns,
        inode=facts.st_ino,
    )
    assert [log.path for log in found.logs] == [first, second]
    assert (found.logs[1].compressed, found.skipped, found.unreachable, found.problem) == (False, [], [], None)


def test_the_highest_generation_wins(store: Path) -> None:
    """Older generations beside a newer one are superseded, by number and not by spelling."""
    for version in (0, 3, 4, 10):
        Log(id="one", version=version).write(store)
    found = logs.discover(store)
    assert [log.version for log in found.logs] == [10]
    assert [(skipped.relative.rsplit("/", 1)[1], skipped.state) for skipped in found.skipped] == [
        ("session.jsonl.zstd", "superseded"),
        ("session.v3.jsonl.zstd", "superseded"),
        ("session.v4.jsonl.zstd", "superseded"),
    ]


def test_a_generation_beyond_all_numbers_is_the_newest(store: Path) -> None:
    """A name may state a generation that nothing can store; it is read as the greatest that can be."""
    written = Log(id="one").write(store)
    written.with_name(f"session.v{'9' * 200}.jsonl.zstd").write_bytes(written.read_bytes())
    (found,) = logs.discover(store).logs
    assert (found.version, found.path.parent.name, found.path.name[:10]) == (2**53 - 1, "one", "session.v9")
    assert _codes(list(logs.read(found.path))) == ["version_mismatch"]


def test_names_that_are_no_logs(store: Path) -> None:
    """Names that dsh ignores are reported where they look like logs; transient files and locks are not."""
    folder = Log(id="one").write(store).parent
    for name in ("session.v0.jsonl", "session.V4.jsonl", "session.v04.jsonl.zstd", "session.v4.jsonl.gz"):
        (folder / name).touch()
    for name in ("session.lock", "session.v4.jsonl.zstd.0123456789ab.tmp", "notes.txt", ".DS_Store"):
        (folder / name).touch()
    (store / "--w-a--" / "session-old.jsonl.zstd").touch()
    (store / "flat.jsonl").touch()
    found = logs.discover(store)
    assert len(found.logs) == 1
    assert {(Path(skipped.relative).name, skipped.state) for skipped in found.skipped} == {
        ("session.v0.jsonl", "unreadable"),
        ("session.V4.jsonl", "unreadable"),
        ("session.v04.jsonl.zstd", "unreadable"),
        ("session.v4.jsonl.gz", "unreadable"),
        ("session-old.jsonl.zstd", "unreadable"),
        ("flat.jsonl", "unreadable"),
    }


def test_what_is_not_a_regular_file(store: Path) -> None:
    """A pipe or a folder under a log's name is unreadable and never opened."""
    folder = Log(id="one").folder(store)
    folder.mkdir(parents=True)
    os.mkfifo(folder / "session.v4.jsonl.zstd")
    (folder / "session.v3.jsonl").mkdir()
    found = logs.discover(store)
    assert found.logs == []
    assert [(skipped.state, skipped.reason) for skipped in found.skipped] == [
        ("unreadable", "not a regular file"),
        ("unreadable", "not a regular file"),
    ]
    with pytest.raises(SessionGraphError) as raised:
        list(logs.read(folder / "session.v4.jsonl.zstd"))
    assert raised.value.code == "SESSION_QUERY_PERSISTENCE_FAILED"


def test_a_folder_that_cannot_be_listed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable folder is named as unreachable, so that its sessions are kept; the rest is found."""
    Log("/w/a", id="one").write(store)
    Log("/w/b", id="two").write(store)
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name in ("--w-a--", "two"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert logs.discover(store) == logs.Discovery(unreachable=["--w-a--", "--w-b--/two"])


def test_links_are_followed_but_never_round(store: Path, tmp_path: Path) -> None:
    """A linked folder is a folder; one that leads to itself, or nowhere, is none."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Log("/w/a", id="one").write(elsewhere)
    (store / "--w-a--").symlink_to(elsewhere / "--w-a--")
    (store / "--loop--").symlink_to(store / "--loop--")
    (store / "--gone--").symlink_to(tmp_path / "gone")
    found = logs.discover(store)
    assert ([log.relative for log in found.logs], found.skipped) == (["--w-a--/one/session.v4.jsonl.zstd"], [])


def test_the_name_gives_a_version_that_the_header_lacks(store: Path) -> None:
    """A version that is no number is replaced by that of the name, and reported as unknown."""
    log = Log(id="one")
    log.frames[0] = log.frames[0].replace(b'"version":4', b'"version":"4"')
    units = list(logs.read(log.write(store)))
    assert [unit.version for unit in units if isinstance(unit, Header)] == [4]
    assert _codes(units) == ["newer_version"]


def test_a_store_that_is_missing(tmp_path: Path) -> None:
    """A store that is not there is a problem of the store, not an empty one."""
    found = logs.discover(tmp_path / "nowhere")
    assert (found.logs, found.problem) == ([], "No such file or directory")


def test_names_that_are_not_utf8(store: Path) -> None:
    """A folder's bytes make the log's id; its shown name can always be encoded."""
    folder = os.fsencode(store) + b"/--w--/bad\xff\xfename"
    Path(os.fsdecode(folder)).mkdir(parents=True)
    Path(os.fsdecode(folder + b"/session.v4.jsonl")).write_bytes(Log().frames[0])
    (log,) = logs.discover(store).logs
    assert log.relative == r"--w--/bad\xff\xfename/session.v4.jsonl"
    assert log.log_id == schema.log_id(b"--w--/bad\xff\xfename/session.v4.jsonl")
    assert len(list(logs.read(log.path))) == 4


@BOTH
@STORED
def test_units_come_in_file_order(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """The header is the first unit; every event has its ordinal; frame ends say what lay before them."""
    log = Log()
    log.user("a")
    log.frame()
    log.user("b")
    log.user("c")
    path = log.write(store, compressed)
    units = list(logs.read(path, detail=detail))
    assert isinstance(units[0], Header)
    assert [unit.ordinal for unit in units if isinstance(unit, Event)] == [0, 1, 2]
    ends = [unit for unit in units if isinstance(unit, FrameEnd)]
    assert ends[-1].end == path.stat().st_size
    counters = [(end.first_ordinal, end.ordinal, end.line, end.clean, end.next_seq) for end in ends]
    expected = [(0, 0, 1, True, 0), (0, 1, 2, True, 1), (1, 3, 4, True, 3)]
    assert counters == (expected if compressed else [(0, 3, 4, True, 3)])


@BOTH
@STORED
def test_resuming_sees_only_what_was_appended(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """From the end of the last frame, only new events come, numbered as if all had been read."""
    log = Log().turn("one", "two")
    path = log.write(store, compressed)
    end = [unit for unit in logs.read(path, detail=detail) if isinstance(unit, FrameEnd)][-1]
    log.user("three")
    log.append(path)
    meter = logs.Meter()
    resume = Resume(end.end, end.ordinal, end.line, end.next_seq)
    units = list(logs.read(path, detail=detail, resume=resume, meter=meter))
    fresh = [unit for unit in logs.read(path, detail=detail) if isinstance(unit, Event)]
    assert [unit for unit in units if isinstance(unit, Event)] == fresh[end.ordinal :]
    assert _codes(units) == []
    assert meter.bytes_read == path.stat().st_size - end.end


@BOTH
def test_reading_until_an_offset(store: Path, detail: logs.Detail) -> None:
    """Reading ends after the frame that reaches the offset."""
    log = Log()
    for number in range(5):
        log.user(str(number))
        log.frame()
    path = log.write(store)
    ends = [unit.end for unit in logs.read(path) if isinstance(unit, FrameEnd)]
    assert _seqs(list(logs.read(path, detail=detail, until=ends[2]))) == [0, 1]
    assert _seqs(list(logs.read(path, detail=detail, until=ends[2] + 1))) == [0, 1, 2]


@BOTH
def test_a_last_line_without_newline_is_a_tail(store: Path, detail: logs.Detail) -> None:
    """What no newline has ended is in progress: reported, not read, and resumed at until it is whole."""
    log = Log()
    log.user("a")
    log.frame()
    log.raw(line({"type": "turn/start", "seq": 1, "time": 1, "data": {}})[:-1])
    for compressed in (True, False):
        path = log.write(store, compressed)
        units = list(logs.read(path, detail=detail))
        assert (_seqs(units), _codes(units)) == ([0], ["torn_tail"])
        clean = [unit for unit in units if isinstance(unit, FrameEnd) and unit.clean][-1]
        with path.open("ab") as file:
            file.write(compress(b"\n") if compressed else b"\n")
        resume = Resume(clean.end, clean.ordinal, clean.line, clean.next_seq)
        units = list(logs.read(path, detail=detail, resume=resume))
        assert (_seqs(units), _codes(units)) == ([1], [])


@BOTH
@STORED
def test_numbers_that_repeat_or_jump(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """File order is kept; every repeat and every gap is a fault at its event."""
    log = Log()
    for seq in (0, 1, 1, 2, 7, 8):
        log.event("turn/start", {"turn": 1}, seq=seq)
        log.frame()
    units = list(logs.read(log.write(store, compressed), detail=detail))
    assert _seqs(units) == [0, 1, 1, 2, 7, 8]
    faults = [(unit.code, unit.ordinal, unit.line) for unit in units if isinstance(unit, Fault)]
    assert faults == [("seq_repeated", 2, 4), ("seq_gap", 4, 6)]


@BOTH
def test_damage_explains_a_gap_across_a_resume(store: Path, detail: logs.Detail) -> None:
    """After damage no frame end is clean before the next event, so that a resumed read knows of it too."""
    log = Log()
    log.user("a")
    log.frame()
    log.raw(b"damaged\n")
    log.frame()
    log.event("turn/start", {"turn": 1}, seq=2)
    path = log.write(store)
    units = list(logs.read(path, detail=detail))
    assert _codes(units) == ["bad_line"]
    assert [unit.clean for unit in units if isinstance(unit, FrameEnd)] == [True, True, False, True]


@BOTH
def test_faults_in_a_plain_log_have_their_lines_offset(store: Path, detail: logs.Detail) -> None:
    """In a plain log a bad line is located to the byte."""
    log = Log()
    log.user("a")
    log.raw(b"not json\n")
    log.user("b")
    path = log.write(store, compressed=False)
    (fault,) = [unit for unit in logs.read(path, detail=detail) if isinstance(unit, Fault)]
    assert (fault.offset, fault.line, fault.ordinal) == (path.read_bytes().index(b"not json"), 3, 1)


@BOTH
@STORED
def test_blank_lines_crlf_and_bom(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """Editors' traces cost nothing: a byte order mark, carriage returns, blank lines."""
    log = Log()
    header, event = log.frames[0], line({"type": "turn/start", "seq": 0, "time": 1, "data": {}})
    log.frames = [
        b"\xef\xbb\xbf" + header.replace(b"\n", b"\r\n"),
        b"\n\r\n",
        event.replace(b"\n", b"\r\n") + b"\n",
    ]
    units = list(logs.read(log.write(store, compressed), detail=detail))
    assert (isinstance(units[0], Header), _seqs(units), _codes(units)) == (True, [0], [])


@BOTH
def test_zeros_at_the_end_of_a_plain_log(store: Path, detail: logs.Detail) -> None:
    """Zeros behind the last line are padding, a few or many."""
    for zeros in (1, 100_000):
        log = Log()
        log.user("a")
        path = log.store(store, log.to_bytes(compressed=False) + bytes(zeros), "session.v4.jsonl")
        units = list(logs.read(path, detail=detail))
        assert (_seqs(units), _codes(units)) == ([0], ["padding"])


@BOTH
def test_an_empty_file(store: Path, detail: logs.Detail) -> None:
    """An empty file is one fault."""
    path = Log().store(store, b"")
    assert list(logs.read(path, detail=detail)) == [Fault("empty_file", "the file is empty", 0, None, 0)]


@BOTH
@STORED
def test_a_second_header_moves_nothing(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """Only the first line can be the header, also where it was damaged."""
    log = Log(id="one")
    log.raw(Log("/w/other", id="two").frames[0])
    log.user("a")
    path = log.write(store, compressed)
    units = list(logs.read(path, detail=detail))
    assert [unit.cwd for unit in units if isinstance(unit, Header)] == ["/w/a"]
    assert (_seqs(units), _codes(units)) == ([0], ["second_header"])
    log.frames[0] = b"damaged\n"
    units = list(logs.read(log.write(store, compressed), detail=detail))
    assert [unit for unit in units if isinstance(unit, Header)] == []
    assert _codes(units) == ["bad_header", "second_header"]


@BOTH
def test_a_log_in_another_folder_says_so(store: Path, detail: logs.Detail) -> None:
    """The header decides; that the folder says otherwise is reported."""
    log = Log("/w/a", id="one")
    path = store / "--w-b--" / "two" / "session.v4.jsonl.zstd"
    path.parent.mkdir(parents=True)
    path.write_bytes(log.to_bytes())
    units = list(logs.read(path, detail=detail))
    assert _codes(units) == ["id_mismatch", "folder_mismatch"]
    assert [unit.cwd for unit in units if isinstance(unit, Header)] == ["/w/a"]


@pytest.mark.parametrize(
    "cut",
    [
        lambda header: skippable(b"x") + skippable(b"") + compress(header),
        lambda header: compress(b"") + blocks(b"") + compress(header),
        lambda header: compress(b"\r\n\n") + compress(header),
        lambda header: compress(b"\xef\xbb\xbf") + compress(header),
        lambda header: compress(header[:20]) + skippable(b"x") + compress(header[20:]),
    ],
    ids=["skippable", "empty", "blank", "mark", "split"],
)
def test_peeking_finds_the_header_however_frames_are_cut(store: Path, cut: Callable[[bytes], bytes]) -> None:
    """The first line is the header, whatever frames precede it and however many it fills."""
    log = Log(id="one").turn("x", "y")
    path = log.store(store, cut(log.frames[0]) + log.to_bytes(first=1))
    peeked = logs.peek_header(path)
    assert isinstance(peeked, Header)
    assert (peeked.id, peeked.cwd) == ("one", "/w/a")
    assert not any(isinstance(unit, Fault) for unit in logs.read(path))


@BOTH
@pytest.mark.parametrize("stored", [skippable(b"x"), compress(b""), compress(b"\n \r\n") + compress(b"\n")])
def test_a_file_without_a_line_has_no_header(store: Path, detail: logs.Detail, stored: bytes) -> None:
    """What holds no line says so, and is read from its start when it has grown."""
    path = Log().store(store, stored)
    ends = [unit for unit in logs.read(path, detail=detail) if isinstance(unit, FrameEnd)]
    faults = [unit for unit in logs.read(path, detail=detail) if isinstance(unit, Fault)]
    assert [(fault.code, fault.message) for fault in faults] == [("bad_header", "there is no header")]
    assert not any(end.clean for end in ends)


def test_peeking_reads_no_further_than_the_header(store: Path) -> None:
    """A header is found without reading on; a log without one says why."""
    log = Log(id="one").turn("x", "y")
    header = logs.peek_header(log.write(store))
    assert isinstance(header, Header)
    assert header.id == "one"
    for stored, code in ((b"", "empty_file"), (b"x\n", "not_zstd"), (log.to_bytes()[:9], "torn_tail")):
        fault = logs.peek_header(log.store(store, stored))
        assert isinstance(fault, Fault)
        assert fault.code == code
    assert isinstance(logs.peek_header(log.store(store, b"x\n", "session.v4.jsonl")), Fault)


def test_the_fingerprint_covers_both_ends(store: Path) -> None:
    """It is the hash of the first frame and of the last 64 KiB before the offset, whatever follows."""
    log = Log()
    for number in range(40):
        log.user(hashlib.sha512(str(number).encode()).hexdigest() * 40)
        log.frame()
    path = log.write(store)
    stored = path.read_bytes()
    first = next(unit.end for unit in logs.read(path) if isinstance(unit, FrameEnd))
    before = logs.fingerprint(path, len(stored))
    begin = max(0, len(stored) - 64 * 1024)
    assert before == hashlib.sha256(stored[:first] + stored[begin:]).hexdigest()
    log.user("more")
    log.append(path)
    assert logs.fingerprint(path, len(stored)) == before
    for at in (first - 1, len(stored) - 1):
        path.write_bytes(stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :])
        assert logs.fingerprint(path, len(stored)) != before


@STORED
def test_plain_text_is_the_text_as_stored(store: Path, compressed: bool) -> None:
    """What was written comes back byte for byte in bounded pieces, bad lines included."""
    log = Log().turn("x" * 3_000_000, "y")
    log.raw(b"bad line\r\n")
    pieces = list(logs.plain_text(log.write(store, compressed)))
    assert b"".join(pieces) == b"".join(log.frames)
    assert max(map(len, pieces)) <= 1 << 20


def test_plain_text_leaves_damage_out(store: Path) -> None:
    """A torn tail gives no text, nor does a last line without its newline."""
    log = Log().turn("x", "y" * 3_000_000)
    path = log.store(store, log.to_bytes()[:-3])
    assert b"".join(logs.plain_text(path)) == b"".join(log.frames[:-1])
    text = log.to_bytes(compressed=False)
    for tail in (b"", b"{", b"{" * 3_000_000, bytes(99)):
        path = log.store(store, text + tail, "session.v4.jsonl")
        assert b"".join(logs.plain_text(path)) == text
    assert list(logs.plain_text(log.store(store, b"no line", "session.v4.jsonl"))) == []


def test_the_meter_counts_once(store: Path) -> None:
    """Stored bytes and text are counted for what was read."""
    log = Log().turn("x", "y")
    path, meter = log.write(store), logs.Meter()
    list(logs.read(path, meter=meter))
    assert meter == logs.Meter(path.stat().st_size, sum(map(len, log.frames)))


def test_a_missing_log_is_an_error(store: Path) -> None:
    """A file that cannot be opened is one error of ours, without its path."""
    for call in (lambda p: list(logs.read(p)), logs.peek_header, lambda p: logs.fingerprint(p, 0)):
        with pytest.raises(SessionGraphError) as raised:
            call(store / "missing.zstd")
        assert raised.value.code == "SESSION_QUERY_PERSISTENCE_FAILED"
        assert str(store) not in raised.value.detail


def test_reading_changes_nothing(store: Path) -> None:
    """Neither the file nor its times nor its folder change by being read."""
    path = Log().turn("x", "y").write(store)
    before = (path.stat().st_mtime_ns, path.read_bytes(), sorted(path.parent.iterdir()))
    list(logs.read(path))
    assert (path.stat().st_mtime_ns, path.read_bytes(), sorted(path.parent.iterdir())) == before


@BOTH
@STORED
def test_a_log_that_shrinks_or_grows_while_it_is_read(store: Path, detail: logs.Detail, compressed: bool) -> None:
    """A writer that takes back a failed append ends the reading early; a later append is not waited for."""
    log = Log()
    for number in range(600):
        log.user(random.Random(number).randbytes(4000).hex())
        log.frame()
    path = log.write(store, compressed)
    stored = path.read_bytes()
    for change in (stored[: len(stored) // 2], stored + stored[:5000]):
        path.write_bytes(stored)
        reading = logs.read(path, detail=detail)
        units = [next(reading)]
        with path.open("r+b") as file:
            file.truncate(min(len(change), len(stored)))
            file.seek(0)
            file.write(change)
        units += reading
        seqs = _seqs(units)
        assert seqs == list(range(len(seqs)))
        assert len(seqs) <= 600
        assert set(_codes(units)) <= {"torn_tail"}


def test_a_held_lock_means_live(store: Path) -> None:
    """A session is live while its lock is held; the lock is not taken to learn that."""
    path = Log().write(store)
    assert logs.is_live(path) is False
    lock = path.parent / "session.lock"
    with lock.open("w") as file:
        assert logs.is_live(path) is False
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert logs.is_live(path) is True
        with lock.open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert logs.is_live(path) is False
