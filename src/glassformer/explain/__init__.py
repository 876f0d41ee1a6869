"""How a model is seen: every value between a sentence and its translation, by name.

Read `subject` (who is traced), `record` (how values are read), `operations` (how each is made), `writing` (what the
model wrote), `trace` (all of it together), then `changes` and `what_if`.
"""
