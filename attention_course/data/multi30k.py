"""Multi30k: captions of photographs in English, translated into French by people (Elliott et al., 2016 and 2017).

Nothing of it is part of the course. The files are downloaded once, by the address at which their authors publish them,
into a cache folder; or you name a folder that holds them.
"""

import gzip
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
FOLDER_VARIABLE, CACHE_VARIABLE = "ATTENTION_MULTI30K", "ATTENTION_COURSE_CACHE"
SPLITS = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
SHA256 = {
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}
_PATIENCE = 30  # seconds without a byte before a download is given up
_CHUNK = 1 << 16


class CorpusError(RuntimeError):
    """A file of the corpus cannot be had, or is damaged. The message says which one and what to do."""


def lines(split: str = "train", folder: Path | str | None = None) -> list[tuple[str, str]]:
    """The sentences of a split as (English, French), as they were written.

    Args:
        split: ``"train"`` (29,000 pairs), ``"validation"`` (1,014) or ``"test"`` (1,000).
        folder: where ``train.en.gz`` and so on lie. By default the folder that ``ATTENTION_MULTI30K`` names; without
            it, the files are downloaded into ``ATTENTION_COURSE_CACHE`` or ``~/.cache/attention-course``.

    Raises:
        ValueError: for a split that does not exist.
        CorpusError: for a file that is missing, damaged or out of reach.
    """
    if split not in SPLITS:
        raise ValueError(f"split={split!r} does not exist; multi30k has {', '.join(SPLITS)}.")
    english, french = (_read(f"{SPLITS[split]}.{language}.gz", folder) for language in ("en", "fr"))
    return list(zip(english, french, strict=True))


def cache() -> Path:
    """The folder into which the corpus is downloaded."""
    named = os.environ.get(CACHE_VARIABLE, "").strip()
    return (Path(named).expanduser() if named else Path.home() / ".cache" / "attention-course") / "multi30k"


def _read(name: str, folder: Path | str | None) -> list[str]:
    folder = folder or os.environ.get(FOLDER_VARIABLE, "").strip()
    path = _given(Path(folder).expanduser(), name) if folder else _cached(name)
    return gzip.decompress(path.read_bytes()).decode("utf-8").removesuffix("\n").split("\n")


def _given(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise CorpusError(
            f"{path} is missing. The folder should hold {', '.join(SHA256)}; they are at {ADDRESS}. "
            f"Name no folder, and unset {FOLDER_VARIABLE}, to have them downloaded."
        )
    if not _whole(path, name):
        raise CorpusError(f"{path} is damaged: its SHA-256 sum is not the published one. Get it again from {ADDRESS}")
    return path


def _cached(name: str) -> Path:
    path = cache() / name
    if path.is_file() and not _whole(path, name):
        print(f"{path} is damaged; it is downloaded again.")
        path.unlink()
    if not path.is_file():
        _download(name, path)
    return path


def _whole(path: Path, name: str) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[name]


def _download(name: str, path: Path) -> None:
    """Fetch one file by way of ``NAME.part``, which a later call goes on with if this one breaks off."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):  # the second time only if the part did not fit what the server has
            if _fetch(ADDRESS + name, part, name):
                break
            part.unlink()
    except urllib.error.HTTPError as error:
        raise CorpusError(f"{ADDRESS}{name} cannot be had: the server answers {error.code} {error.reason}.") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise CorpusError(
            f"{ADDRESS}{name} cannot be reached ({reason}). Is there a network? What has arrived is kept: load "
            "again to go on from there. If you have the files, name their folder: load(..., folder=...), or set "
            f"{FOLDER_VARIABLE}."
        ) from None
    except OSError as error:
        raise CorpusError(
            f"{part} cannot be written ({error.strerror or error}). Set {CACHE_VARIABLE} to a folder of yours."
        ) from None
    if not _whole(part, name):
        part.unlink()
        raise CorpusError(
            f"{ADDRESS}{name} arrived damaged: its SHA-256 sum is not the published one. It was deleted; load again. "
            "If that does not help, something on the way, such as a proxy's sign-in page, answers in its place."
        )
    part.replace(path)


def _fetch(url: str, part: Path, name: str) -> bool:
    """Append to ``part`` what it lacks. False where it is longer than the file that the server has."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_PATIENCE)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        return _whole(part, name)  # nothing lies beyond our part: it is the whole file, or none of it
    with answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if goes_on else 0
        total = have + int(answer.headers.get("Content-Length") or 0)
        with part.open("ab" if goes_on else "wb") as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                have += len(chunk)
                of = f" of {total / 1024:,.0f}" if total > have or total == have else ""
                print(f"\rmulti30k: {name} {have / 1024:,.0f}{of} KB", end="", flush=True)
    print()
    if have < total:
        raise ConnectionError(f"it broke off after {have:,} of {total:,} bytes")
    return True
