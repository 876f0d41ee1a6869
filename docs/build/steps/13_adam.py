"""Adam and the paper's learning rate, written out."""

import random

import torch


# --- Learning ---
class Adam:
    def __init__(self, weights):
        self.weights = [(weight, torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]
        self.steps = 0

    @torch.no_grad()
    def step(self, rate):
        self.steps += 1
        for weight, mean, square in self.weights:
            mean += (1 - 0.9) * (weight.grad - mean)  # of the gradients, the latest counting most
            square += (1 - 0.98) * (weight.grad.square() - square)
            direction = mean / (1 - 0.9**self.steps)  # both began at zero: this makes up for it
            size = (square / (1 - 0.98**self.steps)).sqrt()
            weight -= rate * direction / (size + 1e-9)
            weight.grad = None


def learning_rate(step, d_model, warmup=100, factor=0.3):
    """The paper's, whose factor is 1: a straight rise for `warmup` steps, then falling as 1 / sqrt(step)."""
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def learn(task, steps=300, seed=0):
    """A model, and the loss of the held-out pairs along the way."""
    torch.manual_seed(seed)
    chance, curve = random.Random(seed), []
    config = Config(task.tokenizer.tgt_size)
    model = Transformer(config)
    optimizer = Adam(model.parameters())
    for step in range(steps + 1):
        if step % (steps // 10) == 0:
            curve.append((step, measure(model, task)))
        src, tgt, labels = task.batch(chance.sample(task.train, 32))
        loss(model(src, tgt), labels, smoothing=0.1).backward()
        optimizer.step(learning_rate(step + 1, config.d_model))
    return model, curve
