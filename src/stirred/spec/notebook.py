"""How a notebook shows an object: a title, a small table and a note; every text is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

MAX_ROWS_SHOWN = 20  # rows that are shown


def write_html_table(
    title: str, rows: Iterable[Sequence[str]], *, columns: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """Write a table as HTML without colours; the first cell of a row is its head.

    >>> write_html_table("A & B", [("unit", "<household>")])
    '<div><strong>A &amp; B</strong><table><tr><th>unit</th><td>&lt;household&gt;</td></tr></table></div>'
    """
    listed = [tuple(row) for row in rows]
    more = [f"… and {len(listed) - MAX_ROWS_SHOWN:,} more"] if len(listed) > MAX_ROWS_SHOWN else []
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(_write_row(row) for row in listed[:MAX_ROWS_SHOWN])
    below = "".join(f"<p>{escape(note)}</p>" for note in (*more, *notes) if note)
    top = f"<tr>{head}</tr>" if head else ""
    return f"<div><strong>{escape(title)}</strong><table>{top}{body}</table>{below}</div>"


def _write_row(cells: Sequence[str]) -> str:
    return f"<tr><th>{escape(cells[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells[1:])}</tr>"
