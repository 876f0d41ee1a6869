"""What goes in and comes out: corpora, the vocabulary, and batches of ids."""

from glassformer.data.batch import Batch as Batch
from glassformer.data.batch import Batches as Batches
from glassformer.data.batch import BatchOptions as BatchOptions
from glassformer.data.corpus import Corpus as Corpus
from glassformer.data.corpus import Pair as Pair
from glassformer.data.preparation import FilterOptions as FilterOptions
from glassformer.data.preparation import prepare as prepare
from glassformer.data.readers import read_pairs as read_pairs
from glassformer.data.shapes import Shape as Shape
from glassformer.data.store import Store as Store
from glassformer.data.tokenizer import About as About
from glassformer.data.tokenizer import Directed as Directed
from glassformer.data.tokenizer import PairTokenizer as PairTokenizer
from glassformer.data.tokenizer import Tokenizer as Tokenizer
from glassformer.data.vocabulary import END as END
from glassformer.data.vocabulary import PAD as PAD
from glassformer.data.vocabulary import START as START
from glassformer.data.vocabulary import UNK as UNK
from glassformer.data.vocabulary import IdMap as IdMap
from glassformer.data.vocabulary import TokenizerOptions as TokenizerOptions
