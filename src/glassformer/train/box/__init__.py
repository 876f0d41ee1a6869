"""How the translators that ship are trained, scored and described."""
