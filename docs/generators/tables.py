"""Tables inside of documents whose text around them is written by hand."""

from collections.abc import Iterable


def with_table(text: str, name: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """The text with another table between the marks of that name. Raises ValueError when they are missing."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    first, last = text.index(begin), text.index(end)
    before, after = text[:first], text[last + len(end) :]
    lines = [head, tuple("---" for _ in head), *rows]
    table = "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )
    return f"{before}{begin}\n{table}\n{end}{after}"
