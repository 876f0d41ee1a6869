"""The words of the schematics: titles, names of parts, letters of shapes; and where each part is explained."""

from __future__ import annotations

from typing import Literal, NamedTuple

from glassformer.common.strings import Text

Role = Literal[
    "stack", "block", "residual", "embedding", "tokens", "positions", "norm", "self_attention", "cross_attention",
    "feed_forward", "linear", "activation", "dropout", "sum", "head", "ends", "memory", "projection", "heads", "query",
    "key", "value", "step", "mask", "pattern", "merged",
]  # fmt: skip


class Place(NamedTuple):
    """Where a part is explained: a chapter of the handbook, a view of the page."""

    chapter: str
    view: str = ""


PLACES: dict[Role, Place] = {
    "stack": Place("09-encoder", "flow"),
    "block": Place("09-encoder", "block"),
    "residual": Place("07-residual-and-norm", "block"),
    "embedding": Place("02-embedding", "cell"),
    "tokens": Place("02-embedding", "cell"),
    "positions": Place("03-positions", "positions"),
    "norm": Place("07-residual-and-norm", "block"),
    "self_attention": Place("04-attention", "block"),
    "cross_attention": Place("10-decoder", "block"),
    "feed_forward": Place("08-feed-forward", "block"),
    "linear": Place("08-feed-forward", "block"),
    "activation": Place("08-feed-forward", "block"),
    "dropout": Place("13-training"),
    "sum": Place("07-residual-and-norm", "block"),
    "head": Place("11-generator", "decode"),
    "ends": Place("01-tokens", "flow"),
    "memory": Place("09-encoder", "cache"),
    "projection": Place("05-heads", "block"),
    "heads": Place("05-heads", "block"),
    "query": Place("04-attention", "block"),
    "key": Place("04-attention", "block"),
    "value": Place("04-attention", "block"),
    "step": Place("04-attention", "block"),
    "mask": Place("06-masks", "whatif"),
    "pattern": Place("04-attention", "block"),
    "merged": Place("05-heads", "block"),
}

LETTERS = {
    "B": Text("sentences in a batch", "批次里的句子数"),
    "S": Text("source tokens", "源词元数"),
    "T": Text("target tokens", "目标词元数"),
    "D": Text("model width", "模型宽度"),
    "H": Text("heads", "头数"),
    "G": Text("key/value heads", "键值头数"),
    "d": Text("head width", "头的宽度"),
    "F": Text("inner width", "中间宽度"),
    "V": Text("vocabulary", "词表大小"),
    "N": Text("layers", "层数"),
}

TITLES = {
    "model": Text("The whole Transformer", "整个 Transformer"),
    "encoder-layer": Text("One encoder layer", "一个编码器层"),
    "decoder-layer": Text("One decoder layer", "一个解码器层"),
    "attention": Text("Attention with its heads", "注意力与它的头"),
    "masks": Text("Where masks act", "掩码作用在哪里"),
}

SAY = {
    "encoder": Text("Encoder", "编码器"),
    "decoder": Text("Decoder", "解码器"),
    "encoder.layer": Text("Encoder layer", "编码器层"),
    "decoder.layer": Text("Decoder layer", "解码器层"),
    "layer.short": Text("Layer", "层"),
    "short.causal": Text("causal mask", "因果掩码"),
    "short.padding": Text("padding mask", "填充掩码"),
    "source": Text("source ids", "源句编号"),
    "target": Text("target ids, shifted", "目标编号（右移一位）"),
    "logits": Text("logits", "logit"),
    "embedding": Text("Embedding", "嵌入"),
    "tokens": Text("tokens", "词元"),
    "tokens.scaled": Text("tokens · √D", "词元 · √D"),
    "positions": Text("positions", "位置"),
    "rotary": Text("turns q and k", "旋转 q 和 k"),
    "distance": Text("distance, to scores", "距离项，加到分数"),
    "segments": Text("segments", "分段"),
    "layer": Text("LayerNorm", "层归一化"),
    "rms": Text("RMSNorm", "RMS 归一化"),
    "self_attention": Text("Self-attention", "自注意力"),
    "cross_attention": Text("Cross-attention", "交叉注意力"),
    "feed_forward": Text("Feed-forward", "前馈网络"),
    "head": Text("Generator", "生成器"),
    "up": Text("widen", "展宽"),
    "down": Text("narrow", "收窄"),
    "gated": Text("{0}, times the gate", "{0}，再乘门"),
    "tied": Text("shares the embedding's matrix", "与嵌入共用矩阵"),
    "memory": Text("memory", "记忆"),
    "memory.every": Text("for every decoder layer", "供解码器的每一层使用"),
    "in": Text("stream in", "流入"),
    "out": Text("out, to the next layer", "流出，送往下一层"),
    "mask.padding": Text("mask: padding of the source", "掩码：源句的填充"),
    "mask.causal": Text("mask: causal, no look ahead", "掩码：因果，看不到后面"),
    "mask": Text("mask", "掩码"),
    "memory.or": Text("memory (or x itself)", "记忆（或 x 自身）"),
    "projection": Text("Projection", "投影"),
    "W.query": Text("x · W_Q", "x · W_Q"),
    "W.key": Text("memory · W_K", "记忆 · W_K"),
    "W.value": Text("memory · W_V", "记忆 · W_V"),
    "W.output": Text("merged · W_O", "merged · W_O"),
    "query": Text("q queries", "q 查询"),
    "key": Text("k keys", "k 键"),
    "value": Text("v values", "v 值"),
    "heads": Text("H heads", "H 个头"),
    "heads.apart": Text("each on its own", "各算各的"),
    "products": Text("q · kᵀ", "q · kᵀ"),
    "scores": Text("products / √d", "products / √d"),
    "scores.scaled": Text("products · {0}", "products · {0}"),
    "masked": Text("scores + mask", "scores + 掩码"),
    "pattern": Text("softmax over the keys", "在键上做 softmax"),
    "context": Text("pattern · v", "注意力权重 · v"),
    "merged": Text("heads side by side", "各头并排"),
    "to.sum": Text("out, to be added to the stream", "输出，加回残差流"),
    "src_mask": Text("which tokens are real", "哪些是真词元"),
    "why.causal": Text("no query looks ahead;\nmade from the positions", "查询看不到后面；\n由位置得出"),
    "why.padding": Text("no query sees padding;\nmade from src_mask", "查询看不到填充；\n由 src_mask 得出"),
    "keys.axis": Text("keys, {0}", "键，{0}"),
    "queries.axis": Text("queries, {0}", "查询，{0}"),
    "padding": Text("padding", "填充"),
    "mask.within": Text("Within each of them:", "在每个注意力里："),
    "mask.scores": Text("any number", "任意数"),
    "mask.masked": Text("−∞ if hidden", "看不到则 −∞"),
    "mask.pattern": Text("softmax gives 0", "softmax 后为 0"),
}
