"""What one source file holds. Plain functions: bytes in, numbers out."""

import ast
import io
import threading
import tokenize
import warnings
from dataclasses import dataclass

# Changing the warning filters is not safe in threads, and parsing holds the GIL anyway.
_FILTERS = threading.Lock()


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of what a source file holds."""

    lines: int
    tokens: int
    functions: int
    classes: int
    imports: int


def decode(source: bytes) -> str:
    """The text, by the rules of the language: byte order mark, else declared encoding, else UTF-8.

    Raises SyntaxError for an unknown encoding and UnicodeDecodeError for bytes that it cannot hold.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return io.TextIOWrapper(io.BytesIO(source), encoding).read()


def count(source: bytes) -> Counts:
    """Decode, tokenise and parse a source file.

    Raises what the interpreter itself raises: SyntaxError and its kinds, UnicodeDecodeError,
    tokenize.TokenError, and RecursionError or MemoryError for nesting that its parser does not follow.
    """
    text = decode(source)
    with _FILTERS, warnings.catch_warnings():
        # Old code is full of invalid escapes; they are no concern of a catalogue.
        warnings.simplefilter("ignore")
        tokens = sum(1 for _ in tokenize.generate_tokens(io.StringIO(text).readline))
        nodes = [type(node) for node in ast.walk(ast.parse(text))]
    return Counts(
        lines=len(text.splitlines()),
        tokens=tokens,
        functions=nodes.count(ast.FunctionDef) + nodes.count(ast.AsyncFunctionDef),
        classes=nodes.count(ast.ClassDef),
        imports=nodes.count(ast.Import) + nodes.count(ast.ImportFrom),
    )
