"""The archive of a session: its layout, its manifest, masking, and what happens when something goes wrong."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tracemalloc
import unicodedata
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sessiongraph_web import __version__, logs, logtext, packing, redact, zipstream
from sessiongraph_web.entrynames import MAX_NAME_BYTES
from sessiongraph_web.errors import SessionGraphError
from sessiongraph_web.export import Download, Source, zip_download
from sessiongraph_web.schema import log_id
from tests.attachments import file_block, image_block, put_attachment
from tests.builders import Log

_PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
_SECRET = "gh" + "p_" + "a1B2c3D4" * 5
_MARKER = "[masked:github-token]"


def _source(log: Log, path: Path, **more: Any) -> Source:
    return Source(log_id(os.fsencode(path)), path, log.id, log.cwd, log.version, **more)


def _download(
    store: Path, root: Source, descendants: Sequence[Source] = (), *, redact: bool = False, raw: bool = False
) -> Download:
    return zip_download(
        root, descendants, attachments=store.parent / "attachments", redact=redact, limits=logs.Limits(), raw=raw
    )


def _archive(download: Download) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(io.BytesIO(b"".join(download.chunks)))
    assert archive.testzip() is None
    return archive


def _has_zip64(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """Say whether an entry's own header has room for 64 bits; the version asked for then is Python's matter."""
    assert archive.fp is not None
    archive.fp.seek(info.header_offset)
    header = archive.fp.read(30)
    archive.fp.seek(int.from_bytes(header[26:28], "little"), os.SEEK_CUR)
    return archive.fp.read(4) == b"\x01\x00\x10\x00"


def _manifest(archive: zipfile.ZipFile) -> Any:
    return json.loads(archive.read("manifest.json"))


def _text(log: Log) -> bytes:
    log.frame()
    return b"".join(log.frames)


def _citing(*blocks: dict[str, Any], **options: Any) -> Log:
    log = Log(**options).turn("look", "at this")
    log.event("user/message", {"content": list(blocks), "source": {"kind": "user"}}, surfaceOp="append")
    log.frame()
    return log


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_log_is_packed_as_stored_but_decompressed(store: Path, version: int, compressed: bool) -> None:
    """The root lies under its own generation's name, byte for byte, and the manifest ends the archive."""
    log = Log(version=version).turn("你好", "world", [("bash", '{"command":"ls"}', "a\nb")])
    path = log.write(store, compressed)
    text = _text(log)

    download = _download(store, _source(log, path))
    archive = _archive(download)

    base = "session.jsonl" if version == 0 else f"session.v{version}.jsonl"
    assert (download.filename, download.media_type) == (f"dsh-session-{log.id}.zip", "application/zip")
    assert archive.namelist() == [base, "manifest.json"]
    assert archive.read(base) == text
    assert _manifest(archive) == {
        "product": "sessiongraph-web",
        "product_version": __version__,
        "note": "Logs hold whatever tools printed, passwords and keys included. Look before you share this, "
        "or export again with redact=1.",
        "session_id": log.id,
        "format": "text",
        "redacted": False,
        "entries": [
            {
                "name": base,
                "kind": "log",
                "original": path.name,
                "session_id": log.id,
                "cwd": "/w/a",
                "version": version,
                "size": len(text),
                "sha256": hashlib.sha256(text).hexdigest(),
                "state": "complete",
                "damage": [],
            }
        ],
        "missing": [],
        "unlisted": 0,
    }


def test_entries_are_deflated_streamed_and_ready_for_any_size(store: Path) -> None:
    """Sizes follow the data (nothing seeks back), and each entry may grow beyond 4 GiB."""
    log = Log().turn("a", "b")
    archive = _archive(_download(store, _source(log, log.write(store))))

    shape = {(info.compress_type, info.flag_bits & 0x8, _has_zip64(archive, info)) for info in archive.infolist()}
    assert shape == {(zipfile.ZIP_DEFLATED, 0x8, True)}


def test_descendants_lie_flat_in_the_order_given(store: Path) -> None:
    """Each descendant has a folder under `subagents/`; a log given twice is packed once."""
    root = Log(id="root")
    children = [Log(id=f"child {name}", parent="root", version=version) for name, version in (("b", 4), ("a", 0))]
    sources = [_source(log, log.write(store)) for log in (root, *children)]

    archive = _archive(_download(store, sources[0], [*sources[1:], sources[0], sources[1]]))

    assert archive.namelist() == [
        "session.v4.jsonl",
        "subagents/child_b/session.v4.jsonl",
        "subagents/child_a/session.jsonl",
        "manifest.json",
    ]
    assert [entry["session_id"] for entry in _manifest(archive)["entries"]] == ["root", "child b", "child a"]


def test_what_is_cited_is_packed_once_with_its_original_spelling(store: Path) -> None:
    """Media come before files, under names without a colon; the manifest says who cites them, and how."""
    attachments = store.parent / "attachments"
    image = put_attachment(attachments, _PNG, kind="image")
    file = put_attachment(attachments, b"bytes", kind="file")
    root = _citing(file_block(file, "con"), image_block(image), image_block(image), id="root")
    child = _citing(file_block(file, "报告: a/b.txt"), id="child")
    sources = [_source(log, log.write(store)) for log in (root, child)]

    archive = _archive(_download(store, sources[0], sources[1:]))

    media, packed = f"media/sha256-{image}.png", f"files/{file[:2]}/{file}/报告_ a_b.txt"
    assert archive.namelist()[2:] == [media, packed, "manifest.json"]
    assert (archive.read(media), archive.read(packed)) == (_PNG, b"bytes")
    described = [
        (entry["name"], entry["original"], entry["original_name"], entry["session_ids"], entry["state"])
        for entry in _manifest(archive)["entries"][2:]
    ]
    assert described == [
        (media, f"sha256:{image}", None, ["root"], "complete"),
        (packed, f"sha256:{file}", "报告: a/b.txt", ["root", "child"], "complete"),
    ]


def test_what_the_store_has_lost_is_listed(store: Path) -> None:
    """A missing attachment, one without a hash and one whose bytes changed are told, each with its reason."""
    attachments = store.parent / "attachments"
    altered = put_attachment(attachments, b"changed", sha256="d" * 64)
    log = _citing(file_block("c" * 64, "gone.txt"), image_block("no hash"), file_block(altered))
    archive = _archive(_download(store, _source(log, log.write(store))))

    manifest = _manifest(archive)
    missing = {
        lost["original"]: (lost["kind"], lost["original_name"], lost["reason"]) for lost in manifest["missing"]
    }
    assert missing == {
        "sha256:" + "c" * 64: ("file", "gone.txt", "not in the attachment store"),
        "sha256:no hash": ("image", None, "the log gives no usable hash"),
    }
    assert [entry["state"] for entry in manifest["entries"]] == ["complete", "altered"]


def test_a_log_that_cites_without_end_costs_a_bounded_list(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Citations above the limit are counted, not listed, and ids are cut."""
    monkeypatch.setattr(packing, "MAX_CITATIONS", 3)
    log = _citing(*[image_block(f"{number} " * 1000) for number in range(5)])

    manifest = _manifest(_archive(_download(store, _source(log, log.write(store)))))

    assert (len(manifest["missing"]), manifest["unlisted"]) == (3, 2)
    assert max(len(lost["original"]) for lost in manifest["missing"]) == 1000


def test_known_damage_is_told(store: Path) -> None:
    """The manifest repeats what is known to be wrong with a log; what can be read is packed."""
    log = Log().turn("a", "b")
    path = log.write(store)
    path.write_bytes(path.read_bytes()[:-5])

    archive = _archive(_download(store, _source(log, path, damage=("the last write is incomplete",))))

    entry = _manifest(archive)["entries"][0]
    assert (entry["state"], entry["damage"]) == ("damaged", ["the last write is incomplete"])
    assert archive.read("session.v4.jsonl") == b"".join(log.frames[:-1])


def test_masking_works_on_what_strings_say(store: Path) -> None:
    """Secrets are masked in every string however it was escaped; all else says what it said."""
    log = Log(id="session-1").turn("key", f"use {_SECRET}")
    escaped = json.dumps({"type": "x", "seq": 99, "data": {"k": _SECRET}}).replace("ghp_", "\\u0067hp\\u005f")
    log.raw(escaped.encode() + b"\n")
    path = log.write(store)

    archive = _archive(_download(store, _source(log, path), redact=True))

    packed = archive.read("session.v4.jsonl")
    assert _SECRET.encode() not in packed
    before = [json.loads(line) for line in _text(log).splitlines()]
    after = [json.loads(line) for line in packed.splitlines()]
    expected = [redact.mask_value(value) for value in before]
    assert after == [value for value, _ in expected]
    assert after[-1] == {"type": "x", "seq": 99, "data": {"k": _MARKER}}
    manifest = _manifest(archive)
    count = sum(count for _, count in expected)
    assert (manifest["redacted"], manifest["masked"], manifest["left_out"]) == (True, count, 0)


@pytest.mark.parametrize(
    "line",
    [
        f'{{"broken": "{_SECRET}"',
        f'"{_SECRET}"',
        f'["{_SECRET}"]',
        "null",
        f'{{"a": NaN, "b": "{_SECRET}"}}',
        '{"a": ' + "[" * 5000 + f'"{_SECRET}"' + "]" * 5000 + "}",
    ],
)
def test_a_line_that_cannot_be_decoded_is_left_out_of_a_masked_archive(store: Path, line: str) -> None:
    """Such a line is counted and its entry is not called complete; nothing of it leaves."""
    log = Log().turn("a", "b")
    log.raw(line.encode() + b"\n")
    log.raw(b'{"bytes": "' + b"\xff\xfe" + _SECRET.encode() + b'"}\n')
    path = log.write(store)

    archive = _archive(_download(store, _source(log, path), redact=True))

    assert _SECRET.encode() not in archive.read("session.v4.jsonl")
    entry = _manifest(archive)["entries"][0]
    assert (entry["left_out"], entry["state"]) == (2, "damaged")


def test_half_a_character_and_large_numbers_survive_masking(store: Path) -> None:
    """Lines that no strict encoder would write are masked like others."""
    log = Log()
    log.raw(
        b'{"type":"x","data":{"half":"\\ud83d","n":123456789012345678901234567890,"k":"%s"}}\n' % _SECRET.encode()
    )
    path = log.write(store)

    packed = _archive(_download(store, _source(log, path), redact=True)).read("session.v4.jsonl")

    data = json.loads(packed.splitlines()[-1])["data"]
    assert data == {"half": "\ud83d", "n": 123456789012345678901234567890, "k": _MARKER}


def test_only_the_last_of_two_equal_keys_is_written_masked(store: Path) -> None:
    """A key given twice cannot smuggle its first value past the masking."""
    log = Log()
    log.raw(f'{{"type":"x","data":"{_SECRET}","data":{{}}}}\n'.encode())

    packed = _archive(_download(store, _source(log, log.write(store)), redact=True)).read("session.v4.jsonl")

    assert _SECRET.encode() not in packed


def test_attached_texts_are_masked_and_what_cannot_be_is_left_out(store: Path) -> None:
    """In a masked archive a text is masked, a picture stays, anything else is listed with the reason."""
    attachments = store.parent / "attachments"
    image = put_attachment(attachments, _PNG, kind="image")
    text = put_attachment(attachments, f"a {_SECRET}\n".encode())
    binary = put_attachment(attachments, b"PK\x03\x04\xff" + _SECRET.encode())
    posing = put_attachment(attachments, b"API " + _SECRET.encode(), kind="image")
    log = _citing(
        image_block(image), file_block(text, f"{_SECRET}.txt"), file_block(binary, "b.zip"), image_block(posing)
    )
    archive = _archive(_download(store, _source(log, log.write(store)), redact=True))

    held = {name: archive.read(name) for name in archive.namelist()}
    name = f"files/{text[:2]}/{text}/[masked_github-token].txt"
    assert held[f"media/sha256-{image}.png"] == _PNG
    assert held[name] == f"a {_MARKER}\n".encode()
    assert not [entry for entry, content in held.items() if _SECRET.encode() in content or _SECRET in entry]
    assert [lost["original"] for lost in _manifest(archive)["missing"]] == [f"sha256:{binary}"]


def test_ids_and_folders_are_masked_in_the_manifest(store: Path) -> None:
    """A secret in an id, a folder or a cwd leaves no more than one in a text."""
    root, child = Log(id="root"), Log(id=f"x {_SECRET}", cwd=f"/w/{_SECRET}")
    sources = [_source(log, log.write(store)) for log in (root, child)]

    archive = _archive(_download(store, sources[0], sources[1:], redact=True))

    assert _SECRET not in archive.read("manifest.json").decode() + "".join(archive.namelist())


def test_the_raw_format_packs_stored_files_as_they_are(store: Path) -> None:
    """Compressed logs stay compressed, byte for byte, and nothing beside them is packed."""
    root, child = Log(id="root").turn("a", "b"), Log(id="child", version=0).turn("c", "d")
    paths = [log.write(store) for log in (root, child)]
    sources = [_source(log, path) for log, path in zip((root, child), paths, strict=True)]

    archive = _archive(_download(store, sources[0], sources[1:], raw=True))

    assert {name: archive.read(name) for name in archive.namelist()[:-1]} == {
        "session.v4.jsonl.zstd": paths[0].read_bytes(),
        "subagents/child/session.jsonl.zstd": paths[1].read_bytes(),
    }


def test_raw_files_cannot_be_masked(store: Path) -> None:
    """Asking for both is an error that names the parameter, never an unmasked archive."""
    log = Log()
    source = _source(log, log.write(store))

    with pytest.raises(SessionGraphError) as caught:
        _download(store, source, redact=True, raw=True)
    assert (caught.value.code, caught.value.fields) == ("SESSION_QUERY_INVALID_FILTER", {"parameter": "format"})


def test_a_missing_root_is_an_error_before_anything_is_sent(store: Path) -> None:
    """The status of the answer can still tell it."""
    log = Log()
    source = _source(log, log.write(store))
    source.path.unlink()

    with pytest.raises(SessionGraphError, match="PERSISTENCE_FAILED"):
        _download(store, source)


def test_a_failure_on_the_way_cuts_the_archive(store: Path) -> None:
    """What was sent until then does not open as an archive."""
    root, child = Log(id="root").turn("a", "b"), Log(id="child")
    sources = [_source(log, log.write(store)) for log in (root, child)]
    sources[1].path.unlink()
    sent: list[bytes] = []

    with pytest.raises(SessionGraphError, match="PERSISTENCE_FAILED"):
        sent.extend(_download(store, sources[0], sources[1:]).chunks)

    assert sent
    with pytest.raises(zipfile.BadZipFile):
        zipfile.ZipFile(io.BytesIO(b"".join(sent)))


@pytest.mark.parametrize(
    ("seconds", "year"),
    [
        (-1e18, 1980),
        (0, 1980),
        (315532800, 1980),
        (1790000000, 2026),
        (4354819199, 2107),
        (5e9, 2107),
        (1e18, 2107),
    ],
)
def test_dates_stay_in_the_range_of_a_zip(seconds: float, year: int) -> None:
    """A file from before 1980 or after 2107 is packed all the same."""
    assert zipstream.entry("x", seconds, stored=False).date_time[0] == year


def _large(store: Path, megabytes: int) -> Source:
    log = Log()
    filler = "".join(f"{number * 7919 % 9973:x} " for number in range(40_000))
    for number in range(megabytes * 5):
        log.user(f"{number} {filler}")
        log.frame()
    return _source(log, log.write(store))


@pytest.mark.parametrize("masked", [False, True])
def test_memory_does_not_grow_with_the_session(store: Path, masked: bool) -> None:
    """A session of 24 MB is packed within 8 MB."""
    download = _download(store, _large(store, 24), redact=masked)
    tracemalloc.start()
    try:
        size = sum(len(chunk) for chunk in download.chunks)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert size > 2 * 2**20
    assert peak < 8 * 2**20


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_an_abandoned_download_leaves_nothing_open(store: Path) -> None:
    """When the client goes, the log is closed."""
    source = _large(store, 4)
    files = _open_files()
    chunks = _download(store, source).chunks
    assert next(chunks)

    chunks.close()  # type: ignore[attr-defined]

    assert _open_files() == files


def test_a_download_that_is_never_taken_opens_nothing(store: Path) -> None:
    """HEAD prepares an archive and produces none of it."""
    log = Log()
    source = _source(log, log.write(store))
    files = _open_files()

    download = _download(store, source)

    assert _open_files() == files
    assert download.filename.endswith(".zip")


def test_more_than_four_gibibytes_make_a_sound_archive(store: Path, tmp_path: Path) -> None:
    """Sizes and places that 32 bits cannot hold are told in ZIP64; here of a file that is mostly a hole."""
    size = 2**32 + 5
    log = Log()
    source = _source(log, log.write(store, compressed=False))
    os.truncate(source.path, size)
    path = tmp_path / "large.zip"
    zeros = bytes(logtext.BLOCK_BYTES)
    with path.open("wb") as file:
        for chunk in _download(store, source, raw=True).chunks:
            if chunk == zeros:
                file.seek(len(chunk), os.SEEK_CUR)
            else:
                file.write(chunk)

    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        (entry, *_) = _manifest(archive)["entries"]
        assert archive.getinfo("manifest.json").header_offset > size
    assert sizes[source.path.name] == entry["size"] == size
    for tool in (["unzip", "-l"], ["7zz", "l"]):
        if shutil.which(tool[0]):
            listed = subprocess.run([*tool, str(path)], capture_output=True, text=True, check=True).stdout
            assert re.search(rf"\b{size}\b.*{source.path.name}", listed)


def test_names_that_are_one_after_normalisation_are_two_entries(store: Path) -> None:
    """Two attached files whose names differ in accents' spelling, or in case alone, are both there."""
    attachments = store.parent / "attachments"
    names = ("e\u0301.txt", "\u00e9.txt", "\u00c9.TXT", "a:b\0.txt")
    blocks = [
        file_block(put_attachment(attachments, f"{number}".encode()), name) for number, name in enumerate(names)
    ]
    log = _citing(*blocks)
    archive = _archive(_download(store, _source(log, log.write(store))))
    packed = [name for name in archive.namelist() if name.startswith("files/")]
    assert len({unicodedata.normalize("NFC", name).casefold() for name in packed}) == len(names)
    assert {name.rpartition("/")[2] for name in packed} == {"é.txt", "É.TXT", "a_b_.txt"}
    assert all(len(name.encode()) <= MAX_NAME_BYTES for name in archive.namelist())
