"""Small tensors and one test process per core: more threads would only wait for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("PYTHONUNBUFFERED", None)  # which hides a line that was never flushed
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
