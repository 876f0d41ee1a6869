"""Many rows at once: Parquet, JSONL or text, translated shard by shard, in one process or on a Ray cluster."""

from glassformer.deploy.bulk.run import BulkResult as BulkResult
from glassformer.deploy.bulk.run import translate_bulk as translate_bulk
from glassformer.deploy.bulk.workers import BulkJob as BulkJob
