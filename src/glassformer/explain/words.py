"""All that a shown trace says, in English and in Chinese, side by side."""

from __future__ import annotations

from glassformer.common.strings import Language, Text
from glassformer.explain.parts import NORMS

WORDS: dict[str, Text] = {
    "name": Text("name", "名称"),
    "shape": Text("shape", "形状"),
    "axes": Text("axes", "各轴"),
    "formula": Text("formula", "公式"),
    "values": Text("values", "数值"),
    "step": Text("step", "步"),
    "reads": Text("reads", "读入"),
    "writes": Text("writes", "写出"),
    "probability": Text("probability", "概率"),
    "next best": Text("next best", "次选"),
    "head": Text("head {0}", "第 {0} 个头"),
    "range": Text("from {0} to {1}", "从 {0} 到 {1}"),
    "more": Text("{0} more columns", "还有 {0} 列"),
    "place": Text("place", "位置"),
    "gap": Text("holds", "原有"),
    "fits": Text("fits best", "最合适"),
    "label": Text("label", "标签"),
    "no gap": Text(
        "no token is masked: below, what the model would put in the place of each token that it can see",
        "没有被遮住的词元：下面是模型在每个它看得见的词元处会填什么",
    ),
    "changed": Text("changed: {0}", "改动：{0}"),
    "score": Text("score {0}, beam {1}", "分数 {0}，束宽 {1}"),
    "tag": Text("{0} tells the model to write {1}; the encoder reads: {2}", "{0} 告诉模型写出 {1}；编码器读入：{2}"),
    "cut": Text("stopped at the longest output allowed", "到达允许的最大长度而停止"),
    "cache": Text(
        "with the key/value cache: {0} multiply-adds instead of {1}; largest difference of a logit {2}",
        "使用键值缓存：乘加 {0} 次，不用则为 {1} 次；logit 最大相差 {2}",
    ),
    "no cache": Text(
        "written without a key/value cache, {1} multiply-adds: without the causal mask a cache would give other"
        " numbers, logits off by up to {2}",
        "未用键值缓存，乘加 {1} 次：没有因果掩码，缓存会给出不同的数（logit 最多相差 {2}）",
    ),
    "last step": Text(
        "values below: of the last step, which read the whole output; the steps are shown as they were written",
        "下面的数值来自最后一步，它读入了全部输出；各步则按写出时的情形列出",
    ),
    "hint": Text(
        "one value in full: --name '*.{0}.pattern', --layer 0, --head 1",
        "看某个值的全貌：--name '*.{0}.pattern'、--layer 0、--head 1",
    ),
    "legend": Text(
        "darker is larger; blue below zero, red above; · hidden by a mask, which a softmax turns into 0",
        "越深越大；蓝色为负，红色为正；· 表示被掩码遮住，过了 softmax 就是 0",
    ),
}

AXES: dict[str, str] = {
    "sentence": "句",
    "head": "头",
    "query:src": "查询:源",
    "query:tgt": "查询:目标",
    "key:src": "键:源",
    "key:tgt": "键:目标",
    "position:src": "位置:源",
    "position:tgt": "位置:目标",
    "position:square": "位置:图块",
    "position:first": "位置:首位",
    "query": "查询",
    "key": "键",
    "position": "位置",
    "pixel": "像素",
    "label": "标签",
    "dim": "头内维",
    "channel": "通道",
    "hidden": "隐层",
    "vocab": "词表",
    "out": "输出",
    "in": "输入",
}

# The words within formulas; all else in them is the same in every language.
FORMULAS: dict[str, str] = {
    "heads side by side": "各头并排",
    "the stream after this layer": "这一层之后的残差流",
    " where visible, else -∞": "，可见处保留，其余为 -∞",
    "norm of the sum": "和的归一化",
    "what cross-attention reads": "交叉注意力读取的内容",
    "1 where key ≤ query and the key is a real token": "键 ≤ 查询且键是真实词元处为 1",
    "1 where key ≤ query": "键 ≤ 查询处为 1",
    "1 where the key is a real token": "键是真实词元处为 1",
    "1 everywhere": "处处为 1",
    " turned by its position": " 按位置旋转",
    " · value, the halves of up": " · value，up 的前后两半",
    ", but heads": "，但头",
    "set by": "设定自",
    "learnt": "学得",
    "pixels of the square": "图块的像素",
    "first, then the squares": "先是学得的首个向量，再是各图块",
    "x at place 0": "x 的第 0 位",
}

# What the arithmetic of each kind is for.
WHY: dict[str, Text] = {
    "lookup": Text("each token's row of a learnt table", "每个词元在一张学得的表里对应的那一行"),
    "pixels": Text("what was given: the image, cut into squares", "给定的输入：切成图块的图像"),
    "prepend": Text(
        "a learnt vector before the squares: it gathers the whole", "图块之前放一个学得的向量，用来汇集整体"
    ),
    "first": Text("the first place speaks for the whole", "由首位代表整体"),
    "scale": Text("the same numbers, all multiplied alike", "所有数乘以同一个系数"),
    "positions": Text("one row per position: where a token stands", "每个位置一行：词元站在哪里"),
    "add": Text("number by number, what each part brings is added", "各部分的贡献逐个相加"),
    "linear": Text("every number is a weighted sum of all its inputs", "每个数都是全部输入的加权和"),
    "rotation": Text("the angles by which each position turns", "每个位置旋转的角度"),
    "rotate": Text(
        "pairs of numbers turned by an angle that grows with the position", "两两成对，按随位置增大的角度旋转"
    ),
    "products": Text("how well each query matches each key, as a dot product", "每个查询与每个键有多匹配：求点积"),
    "mask": Text("what a query must not see is set to minus infinity", "查询不该看到的位置设为负无穷"),
    "softmax": Text("scores become shares that sum to one", "分数变成加起来等于一的份额"),
    "context": Text("the values of the keys, mixed by those shares", "按这些份额把各个键的值混合起来"),
    "merge": Text("the heads' results side by side", "把各个头的结果并排放在一起"),
    **{f"{kind}_norm": part.why for kind, part in NORMS.items()},
    "activation": Text("what bends the straight lines: a curve per number", "打破线性：逐个数过一条曲线"),
    "same": Text("the same value under the name of the whole part", "同一个值，换成整个零件的名称"),
    "visible": Text("1 where a query may see a key, 0 where not", "查询可以看到键的地方为 1，否则为 0"),
    "alibi": Text(
        "the further away, the lower the score, each head with a slope of its own",
        "离得越远分数越低，每个头有自己的斜率",
    ),
    "relative": Text(
        "a learnt term for every distance, far ones in common groups", "每种距离一个学得的偏置，远的合成一组"
    ),
    "replaced": Text("set by a change, not computed", "由改动直接设定，不是算出来的"),
}


def say(key: str, lang: Language, *values: object) -> str:
    return WORDS[key].say(lang, *values)


def formula(told: str, lang: Language) -> str:
    if lang == "zh":
        for english, chinese in FORMULAS.items():
            told = told.replace(english, chinese)
    return told
