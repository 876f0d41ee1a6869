"""Models by their names on the Hugging Face hub: fetched once, into the cache of the hub's own client.

Only what a model needs is fetched: its config.json, its weights as safetensors, whole or in shards, and the files of
its tokenizer. Pickled weights are never fetched. Each file is compared with the hash that the hub gives for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from glassformer.common.errors import ConfigError, GlassformerError, WeightsError, did_you_mean, why
from glassformer.common.files import read_json

SAID = "hf://"  # before a name, where it might be taken for a folder
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def locate(model: str | Path, revision: str | None = None, offline: bool = False) -> Path:
    """The folder of a model that is named: a folder of this name, or else the hub's model, fetched if it must be.

    What is neither is given back as it is, for the caller to refuse.
    """
    name = hub_name(model)
    if name is not None:
        return fetch(name, revision, offline)
    if revision is not None:
        raise ConfigError(f"revision={revision} goes with a name of the hub, such as owner/name; {model} is none")
    return Path(model)


def hub_name(model: str | Path) -> str | None:
    """What a model is called on the hub, if that is what is meant: no folder has this name, nor the owner's alone."""
    if not isinstance(model, str):
        return None
    if model.startswith(SAID):
        name = model.removeprefix(SAID).strip("/")
        if not NAME.fullmatch(name):
            raise ConfigError(f"{model} names no model of the hub; that is written {SAID}owner/name")
        return name
    if not NAME.fullmatch(model) or os.path.lexists(model) or os.path.isdir(model.partition("/")[0]):
        return None
    return model


def model_name(folder: str | Path) -> str:
    """The name of a model by its folder; of one in the client's cache, that on the hub without its owner."""
    folder = Path(folder).resolve()
    stored = folder.parent.parent.name
    return stored.rpartition("--")[2] if folder.parent.name == "snapshots" and "--" in stored else folder.name


COMMIT = re.compile(r"[0-9a-f]{40}")
DEFAULT = "main"
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
# Of the families that are read, and of our own bundles; README.md and all else stay where they are.
TEXT_FILES = (
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "source.spm", "target.spm", "sentencepiece.bpe.model", "spiece.model", "vocab.json", "target_vocab.json",
    "merges.txt", "vocab.txt", "preprocessor_config.json", "tokenizer.src.json", "tokenizer.tgt.json",
    "tokenizer.json.xz", "tokenizer.src.json.xz", "tokenizer.tgt.json.xz", "source_words.txt", "source_words.txt.xz",
    "recipe.toml",
)  # fmt: skip
PICKLED = re.compile(r"pytorch_model.*\.bin|.*\.(pt|pth|ckpt|pkl)")
CONVERTER = "SFconvertbot"  # of the hub: it offers safetensors of pickled weights as a pull request
ASKED = 10.0  # seconds that the hub has for an answer


def fetch(name: str, revision: str | None = None, offline: bool = False) -> Path:
    """The folder of the hub's model `name` in the client's cache, with everything there that it needs."""
    client = hub_client(name)
    if offline or client.constants.HF_HUB_OFFLINE:
        how = "as was asked (offline)" if offline else "since HF_HUB_OFFLINE is set"
        return cached(client, name, revision, f"nothing is fetched, {how}")
    if revision is not None and COMMIT.fullmatch(revision):  # what a commit holds never changes
        with suppress(WeightsError):
            return cached(client, name, revision, "")
    try:
        with told(name, revision):
            info = client.HfApi().model_info(name, revision=revision, timeout=ASKED, files_metadata=True)
    except Unreachable as error:
        folder = cached(client, name, revision, str(error))
        warnings.warn(f"{error}; the copy of {name} in the cache is used", stacklevel=4)
        return folder
    there = {one.rfilename: one for one in info.siblings}
    check_repository(client, name, revision, list(there))
    wanted = [file for file in TEXT_FILES if file in there]
    if SINGLE in there:
        wanted.append(SINGLE)
    else:
        get(client, name, info.sha, [there[INDEX]])
        wanted += [INDEX, *shards(name, folder_of(client, name, info.sha), there)]
    get(client, name, info.sha, [there[file] for file in [*wanted, "config.json"]])
    with told(name, revision):  # last, for it notes which commit the revision is: one that is not whole is never that
        path = client.hf_hub_download(name, "config.json", revision=revision or DEFAULT)
    return Path(path).parent


def cached(client: ModuleType, name: str, revision: str | None, reason: str) -> Path:
    """The same without a word to anybody."""
    try:
        folder = folder_of(client, name, revision or DEFAULT)
    except FileNotFoundError:
        at = f" at revision {revision}" if revision else ""
        raise WeightsError(
            f"{name} is not a folder here, and not in the cache of the hub's models{at} "
            f"({client.constants.HF_HUB_CACHE}): {reason}"
        ) from None
    names = [path.name for path in folder.iterdir()]
    lacking = [] if SINGLE in names else [SINGLE]
    if INDEX in names and lacking:
        lacking = [file for file in weight_map(folder) if file not in names]
    if lacking:
        pickled = any(PICKLED.fullmatch(file) for file in names)
        why = " (pickled weights are there, but never unpickled)" if pickled else ""
        raise WeightsError(f"the cache holds {name} in part: {lacking[0]} is missing{why}; {reason}")
    return folder


def folder_of(client: ModuleType, name: str, revision: str) -> Path:
    """Where the cache holds a revision; its first file is enough to find it."""
    for file in ("config.json", INDEX):
        path = client.try_to_load_from_cache(name, file, revision=revision)
        if isinstance(path, str):
            return Path(path).parent
    raise FileNotFoundError(name)


def check_repository(client: ModuleType, name: str, revision: str | None, files: list[str]) -> None:
    """A repository without what is needed is told before anything is fetched."""
    at = f" at revision {revision}" if revision else ""
    if SINGLE not in files and INDEX not in files:
        pickled = [file for file in files if PICKLED.fullmatch(file)]
        if not pickled:
            raise WeightsError(f"{name}{at} holds no {SINGLE}, nor shards of it: there are no weights to load")
        raise WeightsError(
            f"{name}{at} holds its weights pickled alone ({pickled[0]}), and a pickle can run any code, so it is not "
            f"fetched; {what_to_do(client, name)}"
        )
    if "config.json" not in files:
        raise WeightsError(f"{name}{at} holds no config.json, so nobody knows what its weights are; name another model")


def what_to_do(client: ModuleType, name: str) -> str:
    """Instead of a pickle: the hub's own converter may have offered safetensors, under a revision that can be named."""
    try:
        for one in client.HfApi().get_repo_discussions(name, author=CONVERTER, discussion_type="pull_request"):
            if one.author == CONVERTER and one.is_pull_request and one.status == "open":
                return (
                    f"the hub's converter offers safetensors of it as a pull request: if you trust that, "
                    f"revision=refs/pr/{one.num}"
                )
    except Exception:  # an answer to this is welcome, and no more
        pass
    return (
        "convert it where you trust it, with transformers: "
        f"AutoModel.from_pretrained({name!r}).save_pretrained('folder'), for the class that it is, with its tokenizer; "
        "then name the folder"
    )


def weight_map(folder: Path) -> list[str]:
    """The shards that an index names."""
    table = (read_json(folder / INDEX, "delete it, and load the model again") or {}).get("weight_map")
    if not isinstance(table, dict) or not table or not all(isinstance(file, str) for file in table.values()):
        raise WeightsError(f"{folder / INDEX} names no shards; is it the index of a model?")
    return sorted(set(table.values()))


def shards(name: str, folder: Path, there: dict[str, Any]) -> list[str]:
    files = weight_map(folder)
    for file in files:
        if file not in there:
            raise WeightsError(
                f"{name} lacks {file}, which its {INDEX} names{did_you_mean(file, there)}; its owner must mend that, "
                f"or name a revision that is whole"
            )
    return files


def get(client: ModuleType, name: str, commit: str, files: list[Any]) -> None:
    """Fetch what the cache lacks, and compare each file with what the hub says of it."""
    missing = [
        one for one in files if not isinstance(client.try_to_load_from_cache(name, one.rfilename, revision=commit), str)
    ]
    room(Path(client.constants.HF_HUB_CACHE), name, sum(one.size or 0 for one in missing))
    for one in missing:
        with told(name, commit, one.rfilename):
            take_up(client, name, commit, one)
            path = Path(client.hf_hub_download(name, one.rfilename, revision=commit))
        expected, found = hashes(one, path)
        if expected != found:
            blob = path.resolve()
            path.unlink(missing_ok=True)
            blob.unlink(missing_ok=True)
            raise WeightsError(
                f"{name}: {one.rfilename} came damaged (its hash is {found[:12]}…, the hub says {expected[:12]}…) and "
                f"is not kept; load it again, and if that does not help, see what lies between: a proxy, or HF_ENDPOINT"
            )


def room(cache: Path, name: str, size: int) -> None:
    place = next(one for one in (cache, *cache.parents) if one.is_dir())
    free = shutil.disk_usage(place).free
    if size > free:
        raise WeightsError(
            f"{name} takes {size / 1e6:,.0f} MB more, but {place} has {free / 1e6:,.0f} MB free; make room, or set "
            f"HF_HUB_CACHE to a folder on another disk"
        )


def hashes(one: Any, path: Path) -> tuple[str, str]:
    """What the hub says of a file, and what it is: large ones by their SHA-256, others as git names them."""
    if one.lfs:
        with path.open("rb") as file:
            return one.lfs["sha256"], hashlib.file_digest(file, "sha256").hexdigest()
    if not one.blob_id:
        return "", ""
    data = path.read_bytes()
    return one.blob_id, hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def take_up(client: ModuleType, name: str, commit: str, one: Any) -> None:
    """Go on with a file that a killed process has left half, which the client itself would fetch anew."""
    if not one.lfs or not one.size:
        return
    cache, stored = Path(client.constants.HF_HUB_CACHE), f"models--{name.replace('/', '--')}"
    blob = cache / stored / "blobs" / one.lfs["sha256"]
    halves = [path for path in blob.parent.glob(f"{blob.name}*.incomplete") if path.stat().st_size]
    if not halves or blob.exists():
        return
    utils, download = import_module("huggingface_hub.utils"), import_module("huggingface_hub.file_download")
    locks = cache / ".locks" / stored
    locks.mkdir(parents=True, exist_ok=True)
    with utils.WeakFileLock(locks / f"{blob.name}.lock"):  # who writes one of them holds it
        halves = sorted((path for path in halves if path.exists()), key=lambda path: -path.stat().st_size)
        if not halves or blob.exists():
            return
        half = halves[0]
        have = half.stat().st_size
        url = client.hf_hub_url(name, one.rfilename, revision=commit)
        if getattr(
            client.get_hf_file_metadata(url), "xet_file_data", None
        ):  # such a file is not written from its beginning on
            return
        if have < one.size:
            with half.open("ab") as file:
                download.http_get(
                    url, file, resume_size=have, headers=utils.build_hf_headers(), expected_size=one.size,
                    displayed_filename=one.rfilename,
                )  # fmt: skip
        if hashes(one, half)[1] == blob.name:
            half.replace(blob)
        for path in halves:
            path.unlink(missing_ok=True)


def hub_client(name: str) -> ModuleType:
    try:
        import huggingface_hub
        import huggingface_hub.constants
    except ImportError:
        raise WeightsError(
            f"{name} is not a folder here; to fetch the model of this name from the hub, install its client: "
            f"pip install 'glassformer[hub]'"
        ) from None
    return huggingface_hub


class Unreachable(WeightsError):
    """No answer from the hub, or none that says anything of the model."""


@contextmanager
def told(name: str, revision: str | None, file: str = "") -> Iterator[None]:
    from huggingface_hub import constants, errors

    hub = constants.ENDPOINT
    try:
        yield
    except GlassformerError:
        raise
    except errors.GatedRepoError:
        raise WeightsError(
            f"{name} is gated: its owner lets in who has agreed to the terms; do that at {hub}/{name}, then log in: "
            f"hf auth login (or set HF_TOKEN)"
        ) from None
    except errors.RepositoryNotFoundError:
        raise WeightsError(
            f"{name} is not a folder here, and no model of {hub} that you may see; is the name right? For a private "
            f"model, log in: hf auth login (or set HF_TOKEN)"
        ) from None
    except errors.RevisionNotFoundError:
        raise WeightsError(
            f"{name} has no revision {revision}; a branch, a tag or a commit is meant: see {hub}/{name}/commits"
        ) from None
    except errors.LocalEntryNotFoundError as error:
        raise Unreachable(f"{hub} does not answer ({reason(error.__cause__ or error)})") from None
    except errors.EntryNotFoundError:
        raise WeightsError(
            f"{name} lists {file}, but does not hold it; its owner must mend that, or name a revision that is whole"
        ) from None
    except errors.HfHubHTTPError as error:
        code = error.response.status_code
        if code in (401, 403):
            raise WeightsError(
                f"{hub} does not let you have {name} ({code}); log in with a token that may read it: hf auth login "
                f"(or set HF_TOKEN)"
            ) from None
        raise Unreachable(f"{hub} answers {code} when asked for {name}; try again later") from None
    except errors.HFValidationError as error:
        raise ConfigError(f"{name} is no name of the hub: {reason(error)}") from None
    except Exception as error:
        network = type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "requests", "urllib3")
        if network or isinstance(error, ConnectionError | TimeoutError):
            raise Unreachable(f"{hub} does not answer ({reason(error)}); is there a network?") from None
        if isinstance(error, OSError) and error.errno is None and "onsistency check" in str(error):
            raise WeightsError(f"{name} came short ({reason(error)}); load it again, it goes on") from None
        if isinstance(error, OSError):
            raise WeightsError(
                f"{name} cannot be stored in {constants.HF_HUB_CACHE}: {why(error)}; mend that, or set HF_HUB_CACHE to "
                f"another folder"
            ) from None
        raise


def reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
