"""Tables: each is a function from rows to plain data, written as Markdown or HTML."""

from pprop.study.tables.datasets import dataset_table
from pprop.study.tables.entries import Entry, entries
from pprop.study.tables.epoch_time import epoch_times, time_table
from pprop.study.tables.grid import Column, Group, Table
from pprop.study.tables.html import table_html
from pprop.study.tables.markdown import table_markdown
from pprop.study.tables.more_leads import more_leads_table
from pprop.study.tables.more_runs import more_runs_entries, more_runs_table
from pprop.study.tables.p_values import Comparison, comparisons, p_value_table
from pprop.study.tables.samples import Sample, Samples, read_all_samples, read_samples
from pprop.study.tables.scores import Score, disagreements, overview_table, score, score_table
from pprop.study.tables.search import search_table
from pprop.study.tables.spread import difference_spread_table, spread_table

__all__ = [
    "Column",
    "Comparison",
    "Entry",
    "Group",
    "Sample",
    "Samples",
    "Score",
    "Table",
    "comparisons",
    "dataset_table",
    "difference_spread_table",
    "disagreements",
    "entries",
    "epoch_times",
    "more_leads_table",
    "more_runs_entries",
    "more_runs_table",
    "overview_table",
    "p_value_table",
    "read_all_samples",
    "read_samples",
    "score",
    "score_table",
    "search_table",
    "spread_table",
    "table_html",
    "table_markdown",
    "time_table",
]
