"""What goes in and comes out: corpora, the vocabulary, and batches of ids."""

from glassformer.data.batch import Batch, Batches, BatchOptions, EpochPlan
from glassformer.data.corpus import Corpus, Pair
from glassformer.data.preparation import FilterOptions, prepare
from glassformer.data.readers import read_pairs
from glassformer.data.shapes import Shape, plan_shapes
from glassformer.data.store import Store
from glassformer.data.tokenizer import About, PairTokenizer, Tokenizer
from glassformer.data.tokenizer import Directed as Directed
from glassformer.data.vocabulary import END, PAD, START, UNK, IdMap, TokenizerOptions

__all__ = [
    "END",
    "PAD",
    "START",
    "UNK",
    "About",
    "Batch",
    "BatchOptions",
    "Batches",
    "Corpus",
    "EpochPlan",
    "FilterOptions",
    "IdMap",
    "Pair",
    "PairTokenizer",
    "Shape",
    "Store",
    "Tokenizer",
    "TokenizerOptions",
    "plan_shapes",
    "prepare",
    "read_pairs",
]
