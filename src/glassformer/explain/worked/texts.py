"""All that the worked example says, in English and in Chinese, side by side."""

from __future__ import annotations

from glassformer.common.strings import Text

FRAME = {
    "title": Text(
        "A Transformer by hand: two sentences from ids to logits", "手算 Transformer：两个句子，从编号一路走到 logit"
    ),
    "intro": Text(
        "A real encoder-decoder model, only tiny: 4 numbers per word, 2 heads, 1 encoder layer, 1 decoder layer. "
        "Its weights are whole and half numbers, chosen so that it translates both sentences and a pencil can follow. "
        "German says the units first, twenty one → ein und zwanzig, so the model has to look back and forth.\n\n"
        "Letters: S source words, T target words, D model width, d head width, F feed-forward width. s0 and s1 are the "
        "sentences, h0 and h1 the heads; counting starts at 0, as in the code.\n\n"
        "Names, axes and formulas are those of every trace; a name is a place in the model's module tree. Values show "
        "three decimals, so a sum redone from the printed digits may differ by one in the last. Terms that are 0 are "
        "left out. Weights are drawn with one row per input. Sentence s0 is shown in full, s1 where padding matters; "
        "`--name` and `--json` give everything.\n\n"
        "The norms stand as in the original paper (Post-LN): add, then normalise. Pre-LN, today's usual order, "
        "normalises before each sublayer, leaves the sum alone, and puts one last norm at the end of each stack.",
        "这是一个真正的编码器-解码器模型，只是非常小：每个词用 4 个数表示，2 个头，编码器和解码器各一层。"
        "权重都是整数或半整数，特意挑选过：两个句子都能译对，用一支铅笔也算得过来。"
        "德语先说个位再说十位（twenty one → ein und zwanzig），所以模型必须来回对照着看。\n\n"
        "字母约定：S 源句词数，T 目标句词数，D 模型宽度，d 每个头的宽度，F 前馈网络宽度。"
        "s0、s1 是两个句子，h0、h1 是两个头；和代码一样，从 0 数起。\n\n"
        "名称、各轴和公式与任何一次追踪相同；名称就是数值在模型模块树里的位置。数值保留三位小数，"
        "照着印出的数字重算，末位可能差 1。为 0 的项略去不写。权重矩阵每行对应一个输入分量。"
        "s0 全部画出，s1 只在填充起作用的地方画出；要看全部，请用 `--name` 或 `--json`。\n\n"
        "归一化的位置：这里用 Post-LN，也就是原论文的次序，先相加，再归一化。"
        "如今更常见的 Pre-LN 则在每个子层之前归一化，相加的结果不再改动，最后在编码器和解码器的末尾各补一次。",
    ),
    "answer": Text("What the model says after each word:", "模型在每个词之后会说："),
    "answer.line": Text("s{0}  after {1:8} {2:8} p = {3}   label {4}", "s{0}  {1:8} 之后 {2:8} p = {3}   标签 {4}"),
    "outro": Text(
        "Go on: `glassformer trace --name '*.pattern'` shows all attention patterns of both sentences, "
        "`glassformer trace --json -` gives every value to a program.",
        "接着看：`glassformer trace --name '*.pattern'` 列出两个句子的全部注意力权重，"
        "`glassformer trace --json -` 把每个数值交给程序。",
    ),
}

# In the order of the story: the titles of chapters, and the text of each group of values.
STORY = {
    "chapter.batch": Text("The batch: words become ids", "一个批次：词变成编号"),
    "batch.source": Text(
        "Sentences of one batch must be equally long, so the shorter is filled up with <pad>. "
        "The mask remembers which words are real (1).",
        "同一批次里的句子必须一样长，短的用 <pad> 补齐。掩码记下哪些是真正的词（记为 1）。",
    ),
    "batch.target": Text(
        "The decoder reads the translation shifted right by one, beginning with <start>; at each place the label "
        "is the word that comes next. So all places are trained in one pass.",
        "解码器读到的是右移一位的译文，以 <start> 开头；每个位置的标签就是下一个词。这样一次前向计算就能训练所有位置。",
    ),
    "chapter.encoder.input": Text("Encoder: ids become vectors", "编码器：编号变成向量"),
    "table": Text(
        "One row per word of the vocabulary, learnt in training. Source, target and, at the very end, the logits "
        "share it.",
        "词表里每个词占一行，这些数由训练得来。源句、目标句共用这张表，最后算 logit 时还要再用一次。",
    ),
    "encoder.embedding": Text(
        "Take each word's row, multiply it by √D = 2, and add the row of its place: without it, attention could "
        "not tell one word order from another. t is the place, from 0. Columns 0 and 1 turn quickly, "
        "columns 2 and 3 a hundred times slower.",
        "取出每个词的那一行，乘以 √D = 2，再加上所在位置的那一行；没有位置编码，注意力就分不清词的先后。"
        "t 是位置，从 0 数起。第 0、1 列变化快，第 2、3 列慢一百倍。",
    ),
    "chapter.encoder.self_attention": Text(
        "Encoder: self-attention, every word looks at every word", "编码器自注意力：每个词看所有的词"
    ),
    "encoder.self_attention.project": Text(
        "Each word makes three vectors: a query (what I look for), a key (what I offer), a value (what I hand "
        "over). Columns 0 and 1 of each matrix belong to head 0, columns 2 and 3 to head 1.",
        "每个词生成三个向量：查询（我要找什么）、键（我有什么可供查找）、值（我交出什么）。"
        "每个矩阵的第 0、1 列属于头 0，第 2、3 列属于头 1。",
    ),
    "encoder.self_attention.score": Text(
        "The dot product of a query (row) and a key (column) says how well the two fit. Dividing by √d = √2 "
        "keeps the scores from growing with the width, which would push softmax to all or nothing.",
        "查询（行）与键（列）的点积衡量两者有多契合。除以 √d = √2，注意力分数就不会随宽度变大，"
        "softmax 也就不会走向非 0 即 1 的极端。",
    ),
    "encoder.self_attention.mask": Text(
        "Sentence s0 has no padding and stays as it is. In s1 the column of <pad> gets -inf: no word may look "
        "at it. Its row stays: <pad> may look at others, but nobody will read the outcome.",
        "s0 没有填充，分数不变。s1 里 <pad> 那一列加上 -inf，谁都不能看它。它那一行照常计算："
        "<pad> 可以看别人，只是结果没有人会用。",
    ),
    "encoder.self_attention.softmax": Text(
        "Softmax turns each row into shares that sum to 1. A hidden cell is exactly 0, drawn as ·0.",
        "softmax 把每一行变成总和为 1 的份额。被掩码遮住的格子恰好是 0，画作 ·0。",
    ),
    "encoder.self_attention.mix": Text(
        "Each word collects the values of the words it looks at, in those shares. The two heads are then laid "
        "side by side, and W_O blends them.",
        "每个词按这些份额收集它所看的词的值。两个头的结果随后左右拼接，再由 W_O 融合。",
    ),
    "chapter.encoder.rest": Text(
        "Encoder: residual, norm, feed-forward, and the memory", "编码器：残差、层归一化、前馈网络，得到记忆"
    ),
    "encoder.self_attention_residual": Text(
        "Residual: what attention found is added to what the word already was. Then each row is brought to mean "
        "0 and variance 1 (divided by D, not D - 1); the learnt scale and shift "
        "are 1 and 0 here. ε = 0.00001 only guards against dividing by 0.",
        "残差：把注意力的所得加到这个词原有的向量上。接着做层归一化，每一行变成均值 0、方差 1"
        "（方差除以 D，而不是 D - 1）；可学习的缩放和平移在这里取 1 和 0。"
        "ε = 0.00001 只是为了防止除以 0。",
    ),
    "encoder.feed_forward": Text(
        "Now each word thinks for itself: up to F numbers, negative ones cut to 0, and down to D again. The same "
        "two matrices serve every word.",
        "现在每个词各自思考：先升到 F 个数，负数截成 0，再降回 D 个数。所有的词共用这两个矩阵。",
    ),
    "encoder.feed_forward_residual": Text("Add and normalise again, just as before.", "同样地，再相加，再归一化。"),
    "memory": Text(
        "That is the memory, all that the decoder will ever know of the source. s1's last row belongs to <pad>; "
        "cross-attention will not look at it.",
        "这就是记忆，解码器对源句的全部了解都在这里。s1 的最后一行属于 <pad>，交叉注意力不会去看。",
    ),
    "chapter.decoder.input": Text("Decoder: the target, shifted right", "解码器：右移一位的目标句"),
    "decoder.embedding": Text(
        "The same table and the same places, now for the words written so far.",
        "还是同一张表、同样的位置编码，这回用在已经写出的词上。",
    ),
    "chapter.decoder.self_attention": Text(
        "Decoder: masked self-attention, no word sees the future", "解码器掩码自注意力：谁也看不到后面的词"
    ),
    "decoder.self_attention.project": Text(
        "As in the encoder, with matrices of its own.", "做法与编码器相同，只是换了一组矩阵。"
    ),
    "decoder.self_attention.score": Text("Match and scale as before.", "点积、缩放，与前面一样。"),
    "decoder.self_attention.mask": Text(
        "A word may look at itself and back, never ahead: all cells right of the diagonal get -inf. Otherwise it "
        "could copy the next word instead of learning to foresee it.",
        "每个词只能看自己和前面的词：对角线右边全部加上 -inf。否则它直接抄下一个词就行了，什么也学不会。",
    ),
    "decoder.self_attention.softmax": Text(
        "The first row has only itself to look at, so its share is 1. Padding in the target needs no mask of its "
        "own: it stands at the end, in every real word's future.",
        "第一行只能看自己，份额就是 1。目标句的填充不需要另加掩码：它在句尾，对前面的词来说本来就是未来。",
    ),
    "decoder.self_attention.mix": Text("Collect, lay side by side, blend.", "收集、拼接、融合。"),
    "decoder.self_attention_residual": Text("Add and normalise.", "相加，归一化。"),
    "chapter.decoder.cross_attention": Text(
        "Decoder: cross-attention, the target asks the source", "解码器交叉注意力：目标句向源句提问"
    ),
    "decoder.cross_attention.project": Text(
        "Queries come from the target (T = 4 rows), keys and values from the memory (S = 3 rows).",
        "查询来自目标句（T = 4 行），键和值来自记忆（S = 3 行）。",
    ),
    "decoder.cross_attention.score": Text(
        "The lengths differ, so the matrix is not square: one row per target word, one column per source word.",
        "两边长度不同，所以矩阵不是方的：每行一个目标词，每列一个源词。",
    ),
    "decoder.cross_attention.mask": Text(
        "Only the source's padding is hidden here, again in s1. The whole source is past, none of it future.",
        "这里只遮源句的填充，仍然是 s1 的那一列。源句早已读完，没有什么未来可言。",
    ),
    "decoder.cross_attention.softmax": Text(
        "Read head 0 of s0: <start>, about to say ein, looks at one; und, about to say zwanzig, goes back "
        "to twenty; zwanzig, about to stop, looks at <end>. Here the two languages cross.",
        "看 s0 的头 0：<start> 即将说出 ein，看的是 one；und 即将说出 zwanzig，回头看 twenty；"
        "zwanzig 之后该结束了，看的是 <end>。两种语言的词序就在这里交叉。",
    ),
    "decoder.cross_attention.mix": Text(
        "What arrives are values of the source, in the order of the target.",
        "收集到的是源句的值，次序却是目标句的次序。",
    ),
    "decoder.cross_attention_residual": Text("Add and normalise.", "相加，归一化。"),
    "chapter.decoder.rest": Text("Decoder: feed-forward", "解码器：前馈网络"),
    "decoder.feed_forward": Text(
        "Each target word on its own, as in the encoder.", "与编码器一样，每个目标词各算各的。"
    ),
    "decoder.feed_forward_residual": Text(
        "The last add and norm; its rows hold what comes next.",
        "最后一次相加与归一化；每一行里已经有了下一个词的消息。",
    ),
    "chapter.answer": Text("From vectors back to words", "从向量回到词"),
    "logits": Text(
        "Each row is compared with every word's row of the table E: the better they fit, the higher the logit.",
        "每一行都与表 E 里每个词的那一行比较：越契合，logit 越高。",
    ),
    "probabilities": Text("Softmax once more, now over the vocabulary.", "再做一次 softmax，这回是在整个词表上。"),
    "loss": Text(
        "Training would lower this number: the mean of -ln p over the labels of both sentences, "
        "n of them, <pad> left out.",
        "训练要降低的就是这个数：两个句子所有标签的 -ln p 取平均，共 n 个，<pad> 不计。",
    ),
}
