"""A box of tiny models, for tests: they go both ways, know their tags, and say nothing that makes sense."""

from pathlib import Path

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines import box
from glassformer.weights import bundle

SENTENCES = {
    "en": ["Where is the nearest station?", "The file is not here.", "Run the program and read what it says."],
    "de": ["Wo ist der nächste Bahnhof?", "Die Datei ist nicht hier.", "Starten Sie das Programm und lesen Sie es."],
    "zh": ["最近的车站在哪里？", "文件不在这里。", "运行程序，看看它说什么。"],
}


def make_box(folder: Path) -> Path:
    """The models of the box as the code expects them, in a folder of their own."""
    for name, (a, b) in box.MODELS.items():
        pairs = [*zip(SENTENCES[a], SENTENCES[b], strict=True)] * 3
        both = [*pairs, *((target, source) for source, target in pairs)]
        options = TokenizerOptions(vocab_size=360, placeholders=10)
        tokenizer = Tokenizer.train(both, options, languages=(a, b))
        config = ModelConfig(vocab_size=tokenizer.tgt_size, d_model=32, heads=2, d_ff=64, layers=1, max_length=128)
        model = EncoderDecoder(config)
        bundle.save(folder / name, model, bundle.weights(model), tokenizer, "int8")
        about = f'[about]\nsource = "{a}"\ntarget = "{b}"\npurpose = "three sentences"\npurpose_zh = "三句话"\n'
        (folder / name / "recipe.toml").write_text(about, encoding="utf-8")
    return folder
