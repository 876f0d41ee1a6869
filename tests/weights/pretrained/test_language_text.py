"""NLLB, M2M100 and mBART from text to text: as transformers translates, by Python and by the command line."""

import pickle
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tiny_languages
import torch

import glassformer as gf
from glassformer.common.errors import InputError, WeightsError
from glassformer.weights.pretrained.multilingual import M2M100, MBART50, NLLB, pick_language

SENTENCES = tiny_languages.sentences(200)
LONGEST = 12
WAYS = {
    "nllb": ("eng_Latn", "deu_Latn"),
    "m2m100": ("en", "de"),
    "mbart": ("en_XX", "de_DE"),
    "mbart50": ("en_XX", "de_DE"),
}


class Tiny(NamedTuple):
    kind: str
    folder: Path
    tokenizer: Any
    model: Any

    def load(self, **options):
        source, to = WAYS[self.kind]
        return gf.Translator.load(self.folder, source=source, to=to, **options)

    def generated(self, texts, beam):
        """By transformers."""
        source, to = WAYS[self.kind]
        self.tokenizer.src_lang = source
        m2m = self.kind == "m2m100"
        id = self.tokenizer.get_lang_id(to) if m2m else self.tokenizer.convert_tokens_to_ids(to)
        first = {"decoder_start_token_id": id} if self.kind == "mbart" else {"forced_bos_token_id": id}
        given = self.tokenizer(texts, return_tensors="pt", padding=True)
        with torch.no_grad():
            out = self.model.generate(**given, max_new_tokens=LONGEST, num_beams=beam, do_sample=False, **first)
        # Some of its decoders leave the space of a piece that is nothing else.
        return [text.strip() for text in self.tokenizer.batch_decode(out, skip_special_tokens=True)]


@pytest.fixture(scope="module", params=list(WAYS))
def tiny(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("languages") / request.param
    return Tiny(request.param, folder, *tiny_languages.write_multilingual(request.param, folder))


def texts_of(translator, texts, beam):
    found = translator.translate(texts, beam=beam, max_new_tokens=LONGEST, stopping="huggingface")
    return [best[0].text for best in found]


@pytest.mark.parametrize("beam", [1, 4])
def test_as_transformers_translates(tiny, beam):
    translator, texts = tiny.load(), SENTENCES if tiny.kind in ("nllb", "mbart50") else SENTENCES[:40]
    tiny.tokenizer.src_lang = WAYS[tiny.kind][0]
    assert translator.tokenizer.encode_source(texts) == tiny.tokenizer(texts)["input_ids"]
    wanted = tiny.generated(texts, beam)
    assert texts_of(translator, texts, beam) == wanted
    assert len(set(wanted)) > len(texts) / 8
    ends = [best[0].finished for best in translator.translate(texts, beam=beam, max_new_tokens=LONGEST)]
    assert 0 < sum(ends) < len(texts) or len(texts) < len(SENTENCES)


@pytest.mark.parametrize("tiny", ["nllb"], indirect=True)
def test_the_command_line_and_tokenizer_json_alone(tiny, cli, tmp_path, monkeypatch):
    lines = tmp_path / "lines"
    lines.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    ways = "--from", "eng_Latn", "--to", "deu_Latn", "--device", "cpu", "--precision", "fp32"
    code, out, err = cli("translate", tiny.folder, "--input", lines, *ways)
    assert code == 0, err
    wanted = [best[0].text for best in tiny.load().translate(SENTENCES)]
    assert out.splitlines() == wanted
    assert cli("translate", tiny.folder, SENTENCES[3], *ways)[1] == wanted[3] + "\n"
    assert cli("score", tiny.folder, "--src", lines, "--tgt", lines, *ways)[0] == 0
    code, out, _ = cli("trace", tiny.folder, SENTENCES[3], *ways[:6])
    assert code == 0
    assert "deu_Latn" in out
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    (tmp_path / "rules").mkdir()
    for file in tiny.folder.iterdir():
        if file.name != "sentencepiece.bpe.model":
            (tmp_path / "rules" / file.name).symlink_to(file)
    alone = gf.Translator.load(tmp_path / "rules", source="eng_Latn", to="deu_Latn")
    assert [best[0].text for best in alone.translate(SENTENCES[:50])] == wanted[:50]
    (tmp_path / "rules" / "tokenizer.json").unlink()
    with pytest.raises(WeightsError, match=r"neither sentencepiece.bpe.model nor tokenizer.json"):
        gf.Translator.load(tmp_path / "rules", source="eng_Latn", to="deu_Latn")


@pytest.mark.parametrize("tiny", ["mbart50"], indirect=True)
def test_the_language_is_given_and_costs_nothing(tiny):
    """In every way to ask: whole, in parts, as a stream, from a prefix, by its score, copied, and the other way."""
    translator = tiny.load()
    (best,) = translator.translate(["the cat"], beam=4, length_penalty=0.0)[0]
    assert best.tokens[0] == "de_DE"
    ids = [translator.tokenizer.target_pieces([id])[0] for id in translator.tokenizer.encode_target(["cat"])[0]]
    assert ids[0] == "de_DE"
    likely = translator.likelihoods(["the cat"], ["house"])[0]
    with torch.no_grad():
        logits = translator.model(
            torch.tensor(translator.tokenizer.encode_source(["the cat"])),
            torch.tensor([[2, *translator.tokenizer.encode_target(["house"])[0]]]),
        )
    labels = torch.tensor([*translator.tokenizer.encode_target(["house"])[0], 2])
    own = logits[0].log_softmax(-1).gather(1, labels.unsqueeze(1)).squeeze(1)
    assert likely.log_probability == pytest.approx(float(own[1:].sum()), abs=1e-4)
    assert "".join(translator.stream("the cat")) == translator("the cat")
    assert translator.translate(["the cat"], prefix="house")[0][0].text.startswith("house")
    assert translator.alternatives("the cat")[0].translation.tokens[0] == "de_DE"
    long = translator.translate([" ".join(SENTENCES[:40])])[0][0]
    assert long.parts > 2
    assert long.tokens.count("de_DE") >= long.parts
    assert pickle.loads(pickle.dumps(translator))("the cat") == translator("the cat")
    french = translator.toward("fr")
    assert (french.to, french.about.target, translator.to) == ("fr_XX", "fr", "de_DE")
    assert french("the cat") == gf.Translator.load(tiny.folder, source="en", to="French")("the cat")
    written = gf.trace(french, "the cat").output
    assert written is not None
    assert written["text"] == french("the cat")
    assert gf.TextTranslator(translator).translate(["the cat. the dog."])


@pytest.mark.parametrize("tiny", ["mbart50"], indirect=True)
def test_both_languages_have_to_be_said(tiny, cli):
    assert "52 languages; say from which: --from 'en_XX'" in cli.fails("translate", tiny.folder, "a", "--to", "de")
    assert "52 languages; say into which: --to 'de_DE'" in cli.fails("translate", tiny.folder, "a", "--from", "en")
    assert "did you mean `de_DE` (German)" in cli.fails("translate", tiny.folder, "a", "--from", "en", "--to", "germn")


@pytest.mark.parametrize("tiny", ["mbart"], indirect=True)
def test_a_model_that_starts_with_its_language_keeps_it(tiny):
    with pytest.raises(InputError, match=r"load it again with to='fr_XX'"):
        tiny.load().toward("fr")
    assert (
        gf.Translator.load(tiny.folder, source="en", to="fr").model.config.start_id != tiny.load().model.config.start_id
    )


@pytest.mark.parametrize(
    ("given", "known", "meant"),
    [
        ("deu_Latn", NLLB, "deu_Latn"), ("DEU-latn", NLLB, "deu_Latn"), ("de", NLLB, "deu_Latn"),
        ("de_DE", NLLB, "deu_Latn"), ("German", NLLB, "deu_Latn"), ("zh-TW", NLLB, "zho_Hant"),
        ("zh_Hans", NLLB, "zho_Hans"), ("fa", NLLB, "pes_Arab"), ("zh", MBART50, "zh_CN"), ("deu", MBART50, "de_DE"),
        ("eng_Latn", M2M100, "en"), ("fr", M2M100, "fr"),
    ],
)  # fmt: skip
def test_a_language_by_what_people_call_it(given, known, meant):
    assert pick_language(given, known) == meant


def test_a_language_that_is_not_there_or_not_one():
    with pytest.raises(InputError, match=r"`zh` may be `zho_Hans` or `zho_Hant`; say which"):
        pick_language("zh", NLLB)
    with pytest.raises(InputError, match=r"knows no language `deu_Latin`; did you mean `deu_Latn` \(German\)"):
        pick_language("deu_Latin", NLLB)
    with pytest.raises(InputError, match=r"knows no language `qqq`; it knows `ace_Arab`.*and 196 more"):
        pick_language("qqq", NLLB)
