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

HUB_PREFIX = "hf://"  # before a name that may also be a folder
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
    """The model's name on the hub, unless a folder has this name, or the owner's."""
    if not isinstance(model, str):
        return None
    if model.startswith(HUB_PREFIX):
        name = model.removeprefix(HUB_PREFIX).strip("/")
        if not NAME.fullmatch(name):
            raise ConfigError(f"{model} names no model of the hub; that is written {HUB_PREFIX}owner/name")
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
    "generation_config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "target_vocab.json", "vocab.txt", "merges.txt",
    "source.spm", "target.spm", "spiece.model", "sentencepiece.bpe.model",
)  # fmt: skip
BUNDLE_FILES = (
    "tokenizer.src.json", "tokenizer.tgt.json", "tokenizer.json.xz", "tokenizer.src.json.xz", "tokenizer.tgt.json.xz",
    "source_words.txt", "source_words.txt.xz", "recipe.toml",
)  # fmt: skip
PICKLED = re.compile(r"pytorch_model.*\.bin|.*\.(pt|pth|ckpt|pkl)")
CONVERTER = "SFconvertbot"  # of the hub: it offers safetensors of pickled weights as a pull request
TIMEOUT = 10.0  # seconds for the hub to answer


def fetch(name: str, revision: str | None = None, offline: bool = False) -> Path:
    """The folder of the hub's model `name` in the client's cache, with everything there that it needs."""
    client = hub_client(name)
    if offline or client.constants.HF_HUB_OFFLINE:
        how = "as was asked (offline)" if offline else "since HF_HUB_OFFLINE is set"
        return from_cache(client, name, revision, f"nothing is fetched, {how}")
    if revision is not None and COMMIT.fullmatch(revision):  # what a commit holds never changes
        with suppress(WeightsError):
            return from_cache(client, name, revision, "")
    try:
        with hub_errors(name, revision):
            info = client.HfApi().model_info(name, revision=revision, timeout=TIMEOUT, files_metadata=True)
    except Unreachable as error:
        folder = from_cache(client, name, revision, str(error))
        warnings.warn(f"{error}; the copy of {name} in the cache is used", stacklevel=5)
        return folder
    there = {one.rfilename: one for one in info.siblings}
    check_repository(client, name, revision, list(there))
    wanted = [file for file in (*TEXT_FILES, *BUNDLE_FILES) if file in there]
    if SINGLE in there:
        wanted.append(SINGLE)
    else:
        download(client, name, info.sha, [there[INDEX]])
        wanted += [INDEX, *weight_map(folder_of(client, name, info.sha))]
    for file in wanted:
        if file not in there:  # one of the shards
            raise WeightsError(
                f"{name} lacks {file}, which its {INDEX} names{did_you_mean(file, there)}; its owner must mend that, "
                f"or name a revision that is whole"
            )
    download(client, name, info.sha, [there[file] for file in [*wanted, "config.json"]])
    with hub_errors(name, revision):  # last: it records the revision's commit, which must be whole by then
        path = client.hf_hub_download(name, "config.json", revision=revision or DEFAULT)
    return Path(path).parent


def from_cache(client: ModuleType, name: str, revision: str | None, reason: str) -> Path:
    """The model's folder in the cache, without a question to the hub; `reason` says why."""
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
    """Where the cache holds a revision."""
    for file in ("config.json", INDEX):
        path = client.try_to_load_from_cache(name, file, revision=revision)
        if isinstance(path, str):
            return Path(path).parent
    raise FileNotFoundError(name)


def check_repository(client: ModuleType, name: str, revision: str | None, files: list[str]) -> None:
    """Refuse a repository that lacks what a model needs, before anything is fetched."""
    at = f" at revision {revision}" if revision else ""
    if SINGLE not in files and INDEX not in files:
        pickled = [file for file in files if PICKLED.fullmatch(file)]
        if not pickled:
            raise WeightsError(f"{name}{at} holds no {SINGLE}, nor shards of it: there are no weights to load")
        raise WeightsError(
            f"{name}{at} holds its weights pickled alone ({pickled[0]}), and a pickle can run any code, so it is not "
            f"fetched; {instead_of_pickle(client, name)}"
        )
    if "config.json" not in files:
        raise WeightsError(f"{name}{at} holds no config.json, so nobody knows what its weights are; name another model")


def instead_of_pickle(client: ModuleType, name: str) -> str:
    """Advice: the hub's own converter may have offered safetensors, under a revision that can be named."""
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


def download(client: ModuleType, name: str, commit: str, files: list[Any]) -> None:
    """Fetch what the cache lacks, where there is room, and compare each file with the hash that the hub gives."""
    missing = [
        one for one in files if not isinstance(client.try_to_load_from_cache(name, one.rfilename, revision=commit), str)
    ]
    cache, size = Path(client.constants.HF_HUB_CACHE), sum(one.size or 0 for one in missing)
    place = next(one for one in (cache, *cache.parents) if one.is_dir())
    if size > (free := shutil.disk_usage(place).free):
        raise WeightsError(
            f"{name} takes {size / 1e6:,.0f} MB more, but {place} has {free / 1e6:,.0f} MB free; make room, or set "
            f"HF_HUB_CACHE to a folder on another disk"
        )
    for one in missing:
        with hub_errors(name, commit, one.rfilename):
            resume_download(client, name, commit, one)
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


def resume_download(client: ModuleType, name: str, commit: str, one: Any) -> None:
    """Complete a large file that a killed process left in part; the client itself would start it again."""
    cache, repository = Path(client.constants.HF_HUB_CACHE), f"models--{name.replace('/', '--')}"
    blob = cache / repository / "blobs" / one.lfs["sha256"] if one.lfs and one.size else None
    if blob is None or blob.exists() or not any(blob.parent.glob(f"{blob.name}*.incomplete")):
        return
    utils, file_download = import_module("huggingface_hub.utils"), import_module("huggingface_hub.file_download")
    lock = cache / ".locks" / repository / f"{blob.name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with utils.WeakFileLock(lock):  # a process that is still writing the file holds it
        partial = sorted(blob.parent.glob(f"{blob.name}*.incomplete"), key=lambda path: path.stat().st_size)
        url = client.hf_hub_url(name, one.rfilename, revision=commit)
        if blob.exists() or not partial or getattr(client.get_hf_file_metadata(url), "xet_file_data", None):
            return  # Xet does not write a file from its beginning on
        *_, longest = partial
        if 0 < (size := longest.stat().st_size) < one.size:
            with longest.open("ab") as file:
                file_download.http_get(
                    url, file, resume_size=size, headers=utils.build_hf_headers(), expected_size=one.size,
                    displayed_filename=one.rfilename,
                )  # fmt: skip
        if hashes(one, longest)[1] == blob.name:
            longest.replace(blob)
        for path in partial:
            path.unlink(missing_ok=True)


def hashes(one: Any, path: Path) -> tuple[str, str]:
    """The hash that the hub gives, and that of the file: SHA-256 for large files, git's own for others."""
    if one.lfs:
        with path.open("rb") as file:
            return one.lfs["sha256"], hashlib.file_digest(file, "sha256").hexdigest()
    if not one.blob_id:
        return "", ""
    data = path.read_bytes()
    return one.blob_id, hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


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
    """The hub gives no answer, or none about the model."""


@contextmanager
def hub_errors(name: str, revision: str | None, file: str = "") -> Iterator[None]:
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
            raise WeightsError(f"{name} came short ({reason(error)}); load it again") from None
        if isinstance(error, OSError):
            raise WeightsError(
                f"{name} cannot be stored in {constants.HF_HUB_CACHE}: {why(error)}; mend that, or set HF_HUB_CACHE to "
                f"another folder"
            ) from None
        raise


def reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
