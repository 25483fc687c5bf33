"""Tables: each is a function from rows to plain data, written as Markdown or HTML.

`entries` reads the rows and gathers them by model and dataset; `paper`, `p_values`, `runs`, `spread` and `times` have a function
for each table; `table` has what the functions return and writes it.
"""

from pprop.study.tables.entries import read_samples as read_samples
