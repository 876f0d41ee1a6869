"""Many rows at once: Parquet, JSONL or text, translated shard by shard, in one process or on a Ray cluster.

sources.py   what there is to translate
shards.py    some rows of a file
lines.py     text and JSONL, cut, read, written, joined
tables.py    Parquet, the same
job.py       what a worker is told, and a worker
folder.py    what is done, and how it stays so
cluster.py   workers on Ray
run.py       the whole
"""

from glassformer.deploy.bulk.run import Asked as Asked
from glassformer.deploy.bulk.run import Outcome as Outcome
from glassformer.deploy.bulk.run import translate_bulk as translate_bulk
