"""What goes in and comes out: corpora, the vocabulary, and batches of ids."""

from glassformer.text.about import About
from glassformer.text.batch import Batch, Batches, BatchOptions, EpochPlan
from glassformer.text.corpus import Corpus, Pair, read_pairs
from glassformer.text.numbering import Numbering
from glassformer.text.preparation import FilterOptions, prepare
from glassformer.text.shapes import Shape, plan_shapes
from glassformer.text.store import Store
from glassformer.text.tokenizer import Directed as Directed
from glassformer.text.tokenizer import PairTokenizer, Tokenizer
from glassformer.text.vocabulary import END, PAD, START, UNK, TokenizerOptions

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
    "Numbering",
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
