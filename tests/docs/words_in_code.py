"""The words in code (comments, docstrings, printed strings), separated from its effect.

The pages of both languages run the same code, with words of their own. With the printed words of one language in place
of the other's, the two outputs are equal.
"""

import ast
import io
import re
import tokenize

# Comments of a recipe, which stands in a string of several lines.
IN_A_STRING = re.compile(r" *# .*$", re.M)


class WordRemover(ast.NodeTransformer):
    """Takes the printed words and docstrings out of a tree; `words` keeps the printed ones in order."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def without_docstring(self, node: ast.Module | ast.FunctionDef | ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Expr(ast.Constant("docstring"))
        return node

    visit_Module = visit_FunctionDef = visit_ClassDef = without_docstring

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and "\n" in node.value:
            return ast.Constant(IN_A_STRING.sub("", node.value))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            node.args = [self.without_words(argument) for argument in node.args]
        self.generic_visit(node)
        return node

    def without_words(self, node: ast.expr) -> ast.expr:
        """An argument of print without its words; names, calls and keys stay."""
        match node:
            case ast.Constant(str() as value):
                self.words.append(value)
                return ast.Constant("words")
            case ast.JoinedStr():
                node.values = [self.without_words(part) for part in node.values]
            case ast.FormattedValue() | ast.Starred():
                node.value = self.without_words(node.value)
            case ast.IfExp():
                node.body, node.orelse = self.without_words(node.body), self.without_words(node.orelse)
        return node


def split_words(code: str) -> tuple[str, list[str]]:
    """The code without its words, formatted in one way, and the words that it prints."""
    transformer = WordRemover()
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
    words = [
        token.string for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
            words.append(text)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            words += IN_A_STRING.findall(node.value)
    return words + split_words(code)[1]
