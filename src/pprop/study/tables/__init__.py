"""Tables: each is a function from rows to plain data, written as Markdown or HTML.

`entries` reads the rows and gathers them by model and dataset; `table` has what the functions return and writes it.
"""

from pprop.study.tables.datasets import dataset_table as dataset_table
from pprop.study.tables.entries import read_samples as read_samples
from pprop.study.tables.p_values import more_leads_table as more_leads_table
from pprop.study.tables.p_values import p_value_table as p_value_table
from pprop.study.tables.p_values import significance_table as significance_table
from pprop.study.tables.runs import cost_table as cost_table
from pprop.study.tables.runs import origin_table as origin_table
from pprop.study.tables.runs import other_cells_table as other_cells_table
from pprop.study.tables.runs import own_experiments_table as own_experiments_table
from pprop.study.tables.runs import rerun_table as rerun_table
from pprop.study.tables.runs import search_table as search_table
from pprop.study.tables.scores import overview_table as overview_table
from pprop.study.tables.scores import score_table as score_table
from pprop.study.tables.spread import difference_spread_table as difference_spread_table
from pprop.study.tables.spread import more_runs_table as more_runs_table
from pprop.study.tables.spread import spread_table as spread_table
from pprop.study.tables.table import Table as Table
from pprop.study.tables.table import table_html as table_html
from pprop.study.tables.table import table_markdown as table_markdown
from pprop.study.tables.times import main_cost_table as main_cost_table
from pprop.study.tables.times import time_table as time_table
