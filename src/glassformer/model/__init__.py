"""What a Transformer is: tensors in, tensors out. Read `config`, `norm`, `embedding`,
`attention`, `layer`, `transformer`, in that order."""

from glassformer.model.cache import Cache
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

Model = EncoderDecoder | EncoderOnly | DecoderOnly

__all__ = ["Cache", "DecoderOnly", "EncoderDecoder", "EncoderOnly", "Model", "ModelConfig"]
