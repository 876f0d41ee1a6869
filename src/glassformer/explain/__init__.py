"""Looking inside a model: every value between a sentence and its translation, by name.

Read `subject` (what can be traced), `activations` (hooks, and named values), `operations` (how each value is computed),
`decoding` (the output), `trace` (all of it together), then `interventions` and `what_if`.
"""
