"""What runs a model in a browser: ONNX Runtime's WebAssembly, from the npm package `onnxruntime-web`.

It is no part of this project's sources. `make page`, or `python -m glassformer.deploy.export.runtime`, fetches it once,
checks it against the hash below, and keeps the two files that a page needs, with the licence, beside this module.
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
SCRIPT, BINARY, LICENCE = "ort.js", "ort.wasm.gz", "LICENSE-onnxruntime.txt"
# Of all builds the smallest: the processor alone, no GPU. Packed, a quarter of it travels.
TAKEN = {SCRIPT: "package/dist/ort.wasm.bundle.min.mjs", BINARY: "package/dist/ort-wasm-simd-threaded.wasm"}
SHA256 = {
    SCRIPT: "11e64bd8ffe11bd1a2a2f0d6275fdfbbba7262f0b76b99b53d228a8a22ef3d90",
    BINARY: "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",  # unpacked
}
FOLDER = Path(__file__).with_name("vendored")
MIT = f"""\
ONNX Runtime Web {VERSION} (https://www.npmjs.com/package/onnxruntime-web)

MIT License

Copyright (c) Microsoft Corporation

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


def runtime_files() -> dict[str, bytes]:
    """The files by their names, each of them the one that was meant."""
    found: dict[str, bytes] = {}
    for name in TAKEN:
        path = FOLDER / name
        if not path.is_file():
            raise GlassformerError(
                f"what runs a model in a browser is not here: {name} of onnxruntime-web {VERSION}. "
                f"Fetch it once, with a network: make page, or python -m glassformer.deploy.export.runtime"
            )
        data = path.read_bytes()
        check(name, data)
        found[name] = data
    return found | {LICENCE: MIT.encode()}


def check(name: str, data: bytes) -> None:
    """Refuse a file that is not the one whose hash is written above."""
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
    """Get the package and keep what is needed of it; the folder that it is kept in."""
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
        for name, member in TAKEN.items():
            file = archive.extractfile(member)
            assert file is not None
            data = file.read()
            data = gzip.compress(data, 9, mtime=0) if name == BINARY else data
            check(name, data)
            (FOLDER / name).write_bytes(data)
    (FOLDER / LICENCE).write_text(MIT, encoding="utf-8")
    return FOLDER


def ready() -> str:
    """Fetch it where it is not here yet; what was done."""
    try:
        runtime_files()
        return f"onnxruntime-web {VERSION} is in {FOLDER}"
    except GlassformerError:
        return f"onnxruntime-web {VERSION} was put into {fetch()}"


def main() -> None:
    try:
        print(ready())
    except GlassformerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
