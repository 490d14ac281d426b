# SPDX-License-Identifier: Apache-2.0
"""Columns of equal length under names; a data frame where pandas or polars is installed."""
from __future__ import annotations

from html import escape
from typing import Any, Iterator, Mapping, Sequence

from . import _core

SHOWN_ROWS = 20


class Table:
    """Columns by name: `table["busy_s"]` is a list or a NumPy array with one value for each row."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]):
        self._columns = dict(columns)
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise _core.InputError(f"columns of several lengths: {', '.join(f'{name} {length}' for name, length in lengths.items())}")

    @property
    def names(self) -> list[str]:
        """Of the columns, in order."""
        return list(self._columns)

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise KeyError(f"{name}: the columns are {', '.join(self._columns)}")
        return self._columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts."""
        for values in zip(*self._columns.values()):
            yield dict(zip(self._columns, values))

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame(self._columns)

    def to_polars(self) -> Any:
        """A polars.DataFrame; needs polars."""
        import polars

        return polars.DataFrame(self._columns)

    def __repr__(self) -> str:
        cells = [self.names] + [[_shown(value) for value in row] for row in self._first_rows()]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
        return "\n".join(lines + self._rest())

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.names)
        body = "".join("<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>"
                       for row in self._first_rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + "".join(self._rest())

    def _first_rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*(column[:SHOWN_ROWS] for column in self._columns.values())))

    def _rest(self) -> list[str]:
        return [f"... {len(self)} rows"] if len(self) > SHOWN_ROWS else []


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
