"""The report of a study: one HTML page that needs nothing else, and a Markdown page with its figures beside it."""

from pprop.study.report.build import write_report as write_report
