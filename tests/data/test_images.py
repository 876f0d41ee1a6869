"""Images to learn from, as people save them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glassformer.common.errors import DataError
from glassformer.data.readers import read_images

IMAGES = np.arange(4 * 16, dtype=np.uint8).reshape(4, 4, 4)


@pytest.mark.parametrize("labels", [["a", "b", "a", "b"], [b"a", b"b", b"a", b"b"], [0, 1, 0, 1], [True, False] * 2])
def test_labels_are_texts_or_whole_numbers(labels: list[object], tmp_path: Path) -> None:
    np.savez(tmp_path / "some.npz", images=IMAGES, labels=np.array(labels))
    images, names = read_images(tmp_path / "some.npz")
    assert images.shape == (4, 1, 4, 4)
    assert names == [one.decode() if isinstance(one, bytes) else str(one) for one in labels]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([["a"], ["b"], ["a"], ["b"]], r"labels of shape \(4, 1\) and <U1; they are a row of texts or whole numbers"),
        ([0.5, 1.0, 0.5, 1.0], r"labels of shape \(4,\) and float64"),
        (["a\tb", "c", "c", "c"], r"the label 'a\\tb' has signs that cannot be printed"),
    ],
)
def test_other_labels_are_refused(labels: list[object], said: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "some.npz", images=IMAGES, labels=np.array(labels))
    with pytest.raises(DataError, match=said):
        read_images(tmp_path / "some.npz")


def test_a_file_that_is_cut_short_or_another_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    np.savez(path, images=IMAGES, labels=np.array(list("abab")))
    whole = path.read_bytes()
    np.save(tmp_path / "one.npy", IMAGES)
    for content in (
        b"",
        whole[:100],
        whole[: len(whole) // 2],
        whole[:-1],
        b"a text\n",
        (tmp_path / "one.npy").read_bytes(),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"some.npz is no .npz with `images` and `labels`: ") as told:
            read_images(path)
        assert "pickle" not in str(told.value)
    path.write_bytes(whole)
    assert len(read_images(path)[1]) == 4
