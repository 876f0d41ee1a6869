"""Published translators of many languages (M2M100, NLLB, mBART): the codes of their languages, and their tokenizer.

The tokenizer is one SentencePiece model and a token for every language. The source names its language by such a token,
and every target begins with that of its own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from glassformer.common.errors import InputError, WeightsError, one_of
from glassformer.common.files import read_json
from glassformer.data import About
from glassformer.weights.pretrained.family import Settings
from glassformer.weights.pretrained.tokenizer import (
    SURROGATE,
    TOKENIZER_JSON,
    UNKNOWN,
    check_size,
    read_pieces,
    read_tokenizer_json,
)

FEW = 6  # languages that an error lists


class Language(NamedTuple):
    """A code taken apart; as short as it can be: `deu_Latn` is `de` in `Latn`."""

    short: str
    script: str = ""


def language(code: str) -> Language:
    from babel.core import get_global

    first, *rest = code.replace("-", "_").split("_")
    if not all(re.fullmatch(r"[A-Za-z]{2}|\d{3}|[A-Za-z]{4}", part) for part in rest):  # no region, no script
        return Language(code)
    alias: str = get_global("language_aliases").get(first.lower(), first.lower())
    short = first.lower() if "_" in alias else alias
    script = next((part.title() for part in rest if len(part) == 4), "")
    region = next((part.upper() for part in rest if len(part) < 4), "")
    if not script and region:
        likely: str = get_global("likely_subtags").get(f"{short}_{region}", "")
        script = likely.split("_")[1] if likely.count("_") == 2 else ""
    return Language(short, script)


def name_of(code: str) -> str:
    """What a language is called in English; its code where Babel has no word for it."""
    from babel import Locale

    return str(Locale("en").languages.get(language(code).short, code))


def pick_language(given: str, known: Sequence[str]) -> str:
    """The one of the `known` codes that is meant: `deu_Latn` by deu_Latn, deu-latn, deu, de, de_DE or German."""
    for code in known:
        if given.replace("-", "_").casefold() == code.casefold():
            return code
    wanted = language(given)
    same = [
        code for code in known if language(code).short == wanted.short or name_of(code).casefold() == given.casefold()
    ]
    if wanted.script:
        same = [code for code in same if language(code).script in ("", wanted.script)]
    if len(same) == 1:
        return same[0]
    if same:
        raise InputError(f"`{given}` may be {' or '.join(f'`{code}`' for code in same)}; say which")
    names = {name_of(code).casefold(): code for code in known} | {code.casefold(): code for code in known}
    near = [names[word] for word in difflib.get_close_matches(given.casefold(), names, n=3, cutoff=0.85)]
    choices = " or ".join(f"`{code}` ({name_of(code)})" for code in dict.fromkeys(near))
    more = f" and {len(known) - FEW} more" if len(known) > FEW else ""
    rest = f"did you mean {choices}?" if near else f"it knows {one_of(known[:FEW])}{more}"
    raise InputError(f"this model knows no language `{given}`; {rest}")


MULTILINGUAL = ("m2m_100", "mbart")
PIECES = "sentencepiece.bpe.model"
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, UNKNOWN: 3}  # before the pieces, where no file numbers these
CODE = re.compile(r"(?:__)?([a-z]{2,3}(?:_[A-Z][A-Za-z]{1,3})?)(?:__)?")


class SentencePieceCodec:
    """By a SentencePiece model, whose pieces are numbered anew."""

    def __init__(self, processor: Any, numbers: dict[str, int]) -> None:
        self._processor, self._numbers = processor, numbers
        self.names = sorted(numbers, key=numbers.__getitem__)

    def encode(self, text: str) -> list[int]:
        unknown = self._numbers[UNKNOWN]
        return [self._numbers.get(piece, unknown) for piece in self._processor.encode(text, out_type=str)]

    def decode(self, ids: list[int]) -> str:
        return str(self._processor.decode_pieces([self.names[id] for id in ids]))


class TokenizerJsonCodec:
    """By a tokenizer.json, which holds the same rules written out."""

    def __init__(self, path: Path) -> None:
        self._rust = read_tokenizer_json(path)
        self._rust.encode_special_tokens = True  # a mark that a text spells out is text
        self.names = [self._rust.id_to_token(id) or UNKNOWN for id in range(self._rust.get_vocab_size())]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._rust.encode_special_tokens = True  # which its pickle forgets

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._rust.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        return str(self._rust.decode(ids, skip_special_tokens=False))


SubwordCodec = SentencePieceCodec | TokenizerJsonCodec  # text to ids and back, without a language


class MultilingualTokenizer:
    """Text to ids and back, from the language `source` into the language `to`, as Hugging Face's tokenizers do it."""

    def __init__(
        self,
        codec: SubwordCodec,
        languages: dict[str, int],
        source: str,
        to: str,
        *,
        source_first: bool,
        in_start: bool,
    ) -> None:
        self._codec, self._languages = codec, languages
        self.source, self.to = source, to
        self._source_first = source_first  # or last, after the end mark
        self._in_start = in_start  # the language: its token is what the decoder starts from
        self._special = {*languages.values(), *SPECIAL.values()}
        self._special |= {id for id, name in enumerate(codec.names) if name == "<mask>"}
        self._names = dict(enumerate(codec.names)) | {id: code for code, id in languages.items()}

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self._languages)

    @property
    def start(self) -> int | None:
        """What the decoder starts from, where that says the language."""
        return self._languages[self.to] if self._in_start else None

    def toward(self, language: str) -> MultilingualTokenizer:
        """The same into another language."""
        to = pick_language(language, self.tags)
        if self._in_start and to != self.to:
            raise InputError(
                f"this model is told its language before it starts; load it again with to={to!r} for another"
            )
        other = copy(self)
        other.to = to
        return other

    def between(self, source: str, to: str) -> MultilingualTokenizer:
        """The same from another language into another."""
        other = self.toward(to)
        other.source = pick_language(source, self.tags)
        return other

    def card(self, about: About) -> About:
        """What the model is for, its languages by their short codes, as all else here calls them."""
        return replace(about, source=language(self.source).short, target=language(self.to).short)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        own, end = [self._languages[self.source]], [SPECIAL["</s>"]]
        if self._source_first:
            return [[*own, *self._encode(text), *end] for text in texts]
        return [[*self._encode(text), *end, *own] for text in texts]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without the end mark, so that a target can be continued; the language's first, unless the start says."""
        first = [] if self._in_start else [self._languages[self.to]]
        return [[*first, *self._encode(text)] for text in texts]

    def _encode(self, text: str) -> list[int]:
        return self._codec.encode(SURROGATE.sub("\ufffd", text))

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        kept = ([id for id in ids if id not in self._special and id < len(self._codec.names)] for ids in batch)
        return [self._codec.decode(ids).replace("▁", " ").strip() for ids in kept]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names.get(id, UNKNOWN) for id in ids]

    target_pieces = source_pieces

    @classmethod
    def load(
        cls, folder: Path, settings: Settings, size: int, source: str | None = None, to: str | None = None
    ) -> MultilingualTokenizer:
        """That of a model with a vocabulary of `size`."""
        config = read_json(folder / "tokenizer_config.json") or {}
        kind = kind_of(config, settings, folder)
        codec = codec_of(folder, numbered=kind == "m2m100")
        languages = language_ids_of(folder, config) or published_language_ids(kind, config, codec)
        in_start = kind == "mbart"
        key = "decoder_start_token_id" if in_start else "forced_bos_token_id"
        codes = {id: code for code, id in languages.items()}
        files = (read_json(folder / "generation_config.json") or {}, settings.values)
        written = next((codes[values[key]] for values in files if values.get(key) in codes), None)
        source = pick_given(folder, "source", source or config.get("src_lang"), languages)
        to = pick_given(folder, "to", to or config.get("tgt_lang") or written, languages)
        first = kind != "mbart" and not config.get("legacy_behaviour")
        check_size(max([len(codec.names) - 1, *languages.values()]), size, "the tokenizer's files")
        return cls(codec, languages, source, to, source_first=first, in_start=in_start)


def pick_given(folder: Path, option: str, given: str | None, languages: dict[str, int]) -> str:
    if given is None:
        what = "from" if option == "source" else "into"
        usual = next((code for code in languages if language(code).short == ("en" if what == "from" else "de")), None)
        example = usual or next(iter(languages))
        raise InputError(f"{folder} knows {len(languages)} languages; say {what} which: {option}={example!r}")
    return pick_language(given, list(languages))


def kind_of(config: dict[str, Any], settings: Settings, folder: Path) -> str:
    """Which of the published tokenizers a folder is for."""
    named = str(config.get("tokenizer_class") or "").removesuffix("Fast")
    if named in ("NllbTokenizer", "M2M100Tokenizer", "MBartTokenizer", "MBart50Tokenizer"):
        return named.removesuffix("Tokenizer").lower()
    if settings.values.get("model_type") == "mbart":
        return "mbart50" if settings.need("vocab_size") % 1000 == 54 else "mbart"  # 250,054 and 250,027 as published
    return "m2m100" if (folder / "vocab.json").is_file() else "nllb"


def codec_of(folder: Path, numbered: bool) -> SubwordCodec:
    """By the SentencePiece model, where it is and can be read, else by tokenizer.json."""
    path, whole = folder / PIECES, folder / TOKENIZER_JSON
    if not path.is_file() and not whole.is_file():
        raise WeightsError(
            f"{folder} holds neither {PIECES} nor {TOKENIZER_JSON}: the model is there, but not its tokenizer"
        )
    if whole.is_file() and not (path.is_file() and find_spec("sentencepiece")):
        return TokenizerJsonCodec(whole)
    processor: Any = read_pieces(path)
    if numbered:
        numbers = read_json(folder / "vocab.json")
        if numbers is None:
            raise WeightsError(f"{folder / 'vocab.json'} is missing: it numbers the pieces of {PIECES}")
        lacking = [mark for mark in SPECIAL if numbers.get(mark) != SPECIAL[mark]]
        if lacking or sorted(numbers.values()) != list(range(len(numbers))):
            raise WeightsError(
                f"{folder / 'vocab.json'} does not number pieces from {one_of(SPECIAL)} on; copy it again"
            )
        return SentencePieceCodec(processor, numbers)
    pieces = [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    if pieces[:3] != [UNKNOWN, "<s>", "</s>"]:
        raise WeightsError(
            f"{path} begins with {one_of(pieces[:3])}, not with `<unk>`, `<s>`, `</s>`: not of this family"
        )
    return SentencePieceCodec(processor, SPECIAL | {piece: id + 1 for id, piece in enumerate(pieces) if id > 2})


def language_ids_of(folder: Path, config: dict[str, Any]) -> dict[str, int]:
    """The languages' tokens as the folder's config files number them, if any does."""
    added = [(int(id), one.get("content")) for id, one in (config.get("added_tokens_decoder") or {}).items()]
    if not added and (folder / TOKENIZER_JSON).is_file():
        listed = (read_json(folder / TOKENIZER_JSON) or {}).get("added_tokens") or []
        added = [(one["id"], one["content"]) for one in listed]
    found = ((CODE.fullmatch(content or ""), id) for id, content in sorted(added))
    return {code[1]: id for code, id in found if code}


def published_language_ids(kind: str, config: dict[str, Any], codec: SubwordCodec) -> dict[str, int]:
    """The languages' tokens behind the pieces, in the order of those who published the model."""
    order = {"nllb": NLLB, "mbart": MBART25, "mbart50": MBART50}
    codes = order.get(kind, M2M100)
    if config.get("language_codes") == "wmt21":
        codes = WMT21
    spelt = {f"__{code}__" if kind == "m2m100" else code: code for code in codes}
    own = {spelt[name]: id for id, name in enumerate(codec.names) if name in spelt}
    return own or {code: len(codec.names) + i for i, code in enumerate(codes)}


MBART25 = [
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN", "hi_IN", "it_IT", "ja_XX",
    "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN",
    "zh_CN",
]  # fmt: skip
MBART50 = [
    *MBART25,
    "af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN", "mn_MN",
    "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN", "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK",
    "xh_ZA", "gl_ES", "sl_SI",
]  # fmt: skip

M2M100 = [
    "af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de", "el",
    "en", "es", "et", "fa", "ff", "fi", "fr", "fy", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr", "ht", "hu",
    "hy", "id", "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km", "kn", "ko", "lb", "lg", "ln", "lo", "lt",
    "lv", "mg", "mk", "ml", "mn", "mr", "ms", "my", "ne", "nl", "no", "ns", "oc", "or", "pa", "pl", "ps", "pt",
    "ro", "ru", "sd", "si", "sk", "sl", "so", "sq", "sr", "ss", "su", "sv", "sw", "ta", "th", "tl", "tn", "tr",
    "uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh", "zu",
]  # fmt: skip
WMT21 = ["en", "ha", "is", "ja", "cs", "ru", "zh", "de"]
NLLB = [
    "ace_Arab", "ace_Latn", "acm_Arab", "acq_Arab", "aeb_Arab", "afr_Latn", "ajp_Arab", "aka_Latn", "amh_Ethi",
    "apc_Arab", "arb_Arab", "ars_Arab", "ary_Arab", "arz_Arab", "asm_Beng", "ast_Latn", "awa_Deva", "ayr_Latn",
    "azb_Arab", "azj_Latn", "bak_Cyrl", "bam_Latn", "ban_Latn", "bel_Cyrl", "bem_Latn", "ben_Beng", "bho_Deva",
    "bjn_Arab", "bjn_Latn", "bod_Tibt", "bos_Latn", "bug_Latn", "bul_Cyrl", "cat_Latn", "ceb_Latn", "ces_Latn",
    "cjk_Latn", "ckb_Arab", "crh_Latn", "cym_Latn", "dan_Latn", "deu_Latn", "dik_Latn", "dyu_Latn", "dzo_Tibt",
    "ell_Grek", "eng_Latn", "epo_Latn", "est_Latn", "eus_Latn", "ewe_Latn", "fao_Latn", "pes_Arab", "fij_Latn",
    "fin_Latn", "fon_Latn", "fra_Latn", "fur_Latn", "fuv_Latn", "gla_Latn", "gle_Latn", "glg_Latn", "grn_Latn",
    "guj_Gujr", "hat_Latn", "hau_Latn", "heb_Hebr", "hin_Deva", "hne_Deva", "hrv_Latn", "hun_Latn", "hye_Armn",
    "ibo_Latn", "ilo_Latn", "ind_Latn", "isl_Latn", "ita_Latn", "jav_Latn", "jpn_Jpan", "kab_Latn", "kac_Latn",
    "kam_Latn", "kan_Knda", "kas_Arab", "kas_Deva", "kat_Geor", "knc_Arab", "knc_Latn", "kaz_Cyrl", "kbp_Latn",
    "kea_Latn", "khm_Khmr", "kik_Latn", "kin_Latn", "kir_Cyrl", "kmb_Latn", "kon_Latn", "kor_Hang", "kmr_Latn",
    "lao_Laoo", "lvs_Latn", "lij_Latn", "lim_Latn", "lin_Latn", "lit_Latn", "lmo_Latn", "ltg_Latn", "ltz_Latn",
    "lua_Latn", "lug_Latn", "luo_Latn", "lus_Latn", "mag_Deva", "mai_Deva", "mal_Mlym", "mar_Deva", "min_Latn",
    "mkd_Cyrl", "plt_Latn", "mlt_Latn", "mni_Beng", "khk_Cyrl", "mos_Latn", "mri_Latn", "zsm_Latn", "mya_Mymr",
    "nld_Latn", "nno_Latn", "nob_Latn", "npi_Deva", "nso_Latn", "nus_Latn", "nya_Latn", "oci_Latn", "gaz_Latn",
    "ory_Orya", "pag_Latn", "pan_Guru", "pap_Latn", "pol_Latn", "por_Latn", "prs_Arab", "pbt_Arab", "quy_Latn",
    "ron_Latn", "run_Latn", "rus_Cyrl", "sag_Latn", "san_Deva", "sat_Beng", "scn_Latn", "shn_Mymr", "sin_Sinh",
    "slk_Latn", "slv_Latn", "smo_Latn", "sna_Latn", "snd_Arab", "som_Latn", "sot_Latn", "spa_Latn", "als_Latn",
    "srd_Latn", "srp_Cyrl", "ssw_Latn", "sun_Latn", "swe_Latn", "swh_Latn", "szl_Latn", "tam_Taml", "tat_Cyrl",
    "tel_Telu", "tgk_Cyrl", "tgl_Latn", "tha_Thai", "tir_Ethi", "taq_Latn", "taq_Tfng", "tpi_Latn", "tsn_Latn",
    "tso_Latn", "tuk_Latn", "tum_Latn", "tur_Latn", "twi_Latn", "tzm_Tfng", "uig_Arab", "ukr_Cyrl", "umb_Latn",
    "urd_Arab", "uzn_Latn", "vec_Latn", "vie_Latn", "war_Latn", "wol_Latn", "xho_Latn", "ydd_Hebr", "yor_Latn",
    "yue_Hant", "zho_Hans", "zho_Hant", "zul_Latn",
]  # fmt: skip
