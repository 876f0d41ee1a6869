"""What code says to a reader (comments, docstrings, what it prints), told apart from what it does.

The pages of both languages do the same and say it in their own words. So does what is printed: with the words of one
language put in place of the other's, the two outputs are one.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize

# Comments of a recipe, which stands in a string of several lines.
IN_A_STRING = re.compile(r" *# .*$", re.M)


class _Muted(ast.NodeTransformer):
    """The tree with what is said taken out, and noted in order."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self.without_docstring(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self.without_docstring(node)

    def without_docstring(self, node: ast.Module | ast.FunctionDef | ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Expr(ast.Constant("docstring"))
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and "\n" in node.value:
            return ast.Constant(IN_A_STRING.sub("", node.value))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            node.args = [self.spoken(argument) for argument in node.args]
        self.generic_visit(node)
        return node

    def spoken(self, node: ast.expr) -> ast.expr:
        """An argument of print without its words. What a name, a call or a key means is not a word."""
        match node:
            case ast.Constant(str() as value):
                self.words.append(value)
                return ast.Constant("said")
            case ast.JoinedStr():
                node.values = [self.spoken(part) for part in node.values]
            case ast.FormattedValue() | ast.Starred():
                node.value = self.spoken(node.value)
            case ast.IfExp():
                node.body, node.orelse = self.spoken(node.body), self.spoken(node.orelse)
        return node


def muted(code: str) -> tuple[str, list[str]]:
    """What `code` does, in one way of writing it, and the words that it prints."""
    transformer = _Muted()
    tree = transformer.visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree)), transformer.words


def printed_as(output: str, words: list[str], others: list[str]) -> str:
    """An output with each of `words`, as the code prints them, in the other language."""
    pairs = sorted(zip(words, others, strict=True), key=lambda pair: -len(pair[0]))
    for word, other in pairs:
        if word != other and word.strip():
            output = output.replace(word.rstrip("\n"), other.rstrip("\n"))
    return output


def all_words(code: str) -> list[str]:
    """Comments, docstrings, printed words, and the comments of recipes."""
    found = [
        token.string for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
            found.append(text)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            found += IN_A_STRING.findall(node.value)
    return found + muted(code)[1]
