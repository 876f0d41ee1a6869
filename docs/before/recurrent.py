"""What translated before Transformers: an LSTM reads, an LSTM writes, and attention may stand between them.

It has the methods of the Transformer in docs/build/transformer.py, so the same code trains it and writes with it.
Shapes: B batch, S source, T target, D width, V vocabulary.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformer import PAD, softmax

LAYERS = 2


class Reader(nn.Module):
    """Reads a source both ways, so that each state knows what is on either side of it."""

    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, width // 2, LAYERS, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # no step reads padding
        states, last = self.lstm(packed)
        states, _ = pad_packed_sequence(states, batch_first=True)  # (B, S, D)
        return states, tuple(self.both_ways(each) for each in last)

    def both_ways(self, last):
        """The last states of both directions side by side: (2 * LAYERS, B, D / 2) -> (LAYERS, B, D)."""
        return last.view(LAYERS, 2, *last.shape[1:]).transpose(1, 2).flatten(2).contiguous()


class Recurrent(nn.Module):
    def __init__(self, vocab_size, width, attention=True):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        nn.init.normal_(self.tokens.weight, std=width**-0.5)
        self.reader = Reader(width)
        self.writer = nn.LSTM(width, width, LAYERS, batch_first=True)
        self.attention = attention
        if attention:
            self.query = nn.Linear(width, width, bias=False)
            self.merge = nn.Linear(2 * width, width)
        for lstm in (self.reader.lstm, self.writer):
            for name, bias in lstm.named_parameters():
                if name.startswith("bias_hh"):
                    forget = len(bias) // 4
                    nn.init.ones_(bias.data[forget : 2 * forget])  # at first the cell forgets little
        self.scale = width**0.5

    def encode(self, src):
        return self.reader(self.tokens(src) * self.scale, (src != PAD).sum(1))

    def decode(self, tgt, memory, src):
        states, last = memory
        hidden, _ = self.writer(self.tokens(tgt) * self.scale, last)  # (B, T, D)
        if self.attention:
            scores = self.query(hidden) @ states.transpose(1, 2)  # (B, T, S)
            pattern = softmax(scores.masked_fill((src == PAD)[:, None, :], float("-inf")))
            hidden = torch.tanh(self.merge(torch.cat((hidden, pattern @ states), dim=-1)))
        return hidden @ self.tokens.weight.T  # (B, T, V)

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)
