"""Learning rates: how they change over a run, and what a wrong one does."""

from __future__ import annotations

from dataclasses import replace

import torch

from glassformer.data import PAD
from glassformer.data.numerals import generate
from glassformer.labs.figures import Figure, Panel, Series, Text
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.model.loss import IGNORED
from glassformer.pipelines.translator import Translator
from glassformer.train import read_recipe
from glassformer.train.options import Train
from glassformer.train.parallel import World
from glassformer.train.step import Inputs, Stepper
from glassformer.train.tuning import lr_factor

STEPS = 50
RATES = (3e-5, 3e-3, 3e-1)
SCHEDULES = {"constant": "常数", "inverse_sqrt": "平方根倒数", "linear": "线性", "cosine": "余弦（演示所用）"}


def draw(t: Translator) -> Figure:
    demo = read_recipe("numerals").train
    steps = range(0, demo.steps, 10)
    left = [
        Series(
            Text("cosine (the demo's)" if name == "cosine" else name, words),
            list(steps),
            [lr_factor(replace(demo, schedule=name), step) for step in steps],
            dashed=name != "cosine",
        )
        for name, words in SCHEDULES.items()
    ]
    batch = pairs(t)
    right = [Series(Text(f"lr {rate:g}", f"学习率 {rate:g}"), range(STEPS), losses(rate, batch)) for rate in RATES]
    return Figure(
        panels=[
            Panel(
                Text("The learning rate of a run", "一次训练里的学习率"),
                Text("step", "步"),
                Text("share of train.lr", "占 train.lr 的比例"),
                left,
            ),
            Panel(
                Text("Too small, right, too large", "太小、合适、太大"),
                Text("step", "步"),
                Text("loss of the batch, nats per token", "该批次的损失（每词元，奈特）"),
                right,
                log_y=True,
            ),
        ],
        caption=Text(
            "Left: four schedules, 120 steps of warm-up each. Right: a small model on the same 12 pairs, three rates.",
            "左：四种学习率曲线，预热都是 120 步。右：同一个小模型、同样的 12 个句对，三种学习率。",
        ),
    )


def pairs(t: Translator) -> Inputs:
    texts = generate("train", size=12)
    sources = t.tokenizer.encode_source([source for source, _ in texts])
    targets = t.tokenizer.encode_target([target for _, target in texts])
    start, end = t.model.config.start_id, t.model.config.end_id
    src, tgt_in, labels = (
        torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
        for rows in (sources, [[start, *ids] for ids in targets], [[*ids, end] for ids in targets])
    )
    asked = labels.masked_fill(labels == PAD, IGNORED)
    rows = {"labels": asked, "src": src, "tgt": tgt_in, "src_mask": src != PAD}
    return Inputs(rows, 1 / (labels != PAD).sum())


def losses(rate: float, batch: Inputs) -> list[float]:
    """Constant rates, no warm-up: nothing but the rate differs."""
    train = Train(steps=STEPS, lr=rate, schedule="constant", warmup_steps=0, label_smoothing=0.0, precision="fp32")
    model = EncoderDecoder(ModelConfig(vocab_size=480, d_model=64, heads=4, d_ff=128, layers=1, dropout=0.0))
    stepper, found = Stepper(model, train, World(0, 1, torch.device("cpu"))), []
    for step in range(STEPS):
        stepper(batch, rate, seed=step)
        found.append(float(stepper.loss_total))
        stepper.loss_total.zero_()
    return found
