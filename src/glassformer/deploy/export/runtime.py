"""What runs a model in a browser: ONNX Runtime's WebAssembly, from the npm package `onnxruntime-web`.

It is not part of the sources. `make page`, or `python -m glassformer.deploy.export.runtime`, fetches it once, checks
it against the hash below, and keeps the two files that a page needs next to this module.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path

from glassformer.common.errors import GlassformerError, why

VERSION = "1.30.0"
ADDRESS = f"https://registry.npmjs.org/onnxruntime-web/-/onnxruntime-web-{VERSION}.tgz"
SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
SCRIPT, BINARY = "ort.js", "ort.wasm.gz"
# The smallest of all builds: for the processor, without a GPU. Compressed it has a quarter of its size.
MEMBERS = {SCRIPT: "package/dist/ort.wasm.bundle.min.mjs", BINARY: "package/dist/ort-wasm-simd-threaded.wasm"}
SHA256 = {
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    BINARY: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",  # unpacked
}
FOLDER = Path(__file__).with_name("vendored")
LICENCE_FILE = Path(__file__).with_name("LICENSE-onnxruntime.txt")


def runtime_files() -> dict[str, bytes]:
    """The files by their names, checked."""
    found: dict[str, bytes] = {}
    for name in MEMBERS:
        path = FOLDER / name
        if not path.is_file():
            raise GlassformerError(
                f"what runs a model in a browser is not here: {name} of onnxruntime-web {VERSION}. "
                f"Fetch it once, with a network: make page, or python -m glassformer.deploy.export.runtime"
            )
        data = path.read_bytes()
        check(name, data)
        found[name] = data
    return found | {LICENCE_FILE.name: LICENCE_FILE.read_bytes()}


def check(name: str, data: bytes) -> None:
    """Raise if a file does not have the hash above."""
    try:
        plain = gzip.decompress(data) if name == BINARY else data
    except (OSError, EOFError):
        plain = b""
    if hashlib.sha256(plain).hexdigest() != SHA256[name]:
        raise GlassformerError(
            f"{FOLDER / name} is not that of onnxruntime-web {VERSION}: its hash is another. "
            f"Fetch it again: make page, or python -m glassformer.deploy.export.runtime"
        )


def fetch(address: str = ADDRESS) -> Path:
    """Download the package and keep the files that are needed; returns their folder."""
    try:
        with urllib.request.urlopen(address, timeout=120) as answer:
            packed = answer.read()
    except OSError as error:
        raise GlassformerError(f"{address} cannot be read: {why(error)}; is there a network?") from None
    digest = base64.b64encode(hashlib.sha512(packed).digest()).decode()
    if digest != SHA512:
        raise GlassformerError(f"{address} is not what it was: its sha512 is {digest}, not {SHA512}; nothing was kept")
    FOLDER.mkdir(exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for name, member in MEMBERS.items():
            file = archive.extractfile(member)
            assert file is not None
            data = file.read()
            data = gzip.compress(data, 9, mtime=0) if name == BINARY else data
            check(name, data)
            (FOLDER / name).write_bytes(data)
    (FOLDER / LICENCE_FILE.name).write_bytes(LICENCE_FILE.read_bytes())
    return FOLDER


def fetch_if_missing() -> str:
    """Returns what was done."""
    try:
        runtime_files()
        return f"onnxruntime-web {VERSION} is in {FOLDER}"
    except GlassformerError:
        return f"onnxruntime-web {VERSION} was put into {fetch()}"


def main() -> None:
    try:
        print(fetch_if_missing())
    except GlassformerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
