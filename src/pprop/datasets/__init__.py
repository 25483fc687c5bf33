"""The paper's four graphs and its splits, and splits by time and group: names become verified files, files graphs."""

from pprop.datasets.load import load_dataset, standardize
from pprop.datasets.own_splits import group_split, time_split
from pprop.datasets.registry import DATASETS, DatasetInfo, dataset_info
from pprop.datasets.splits import TEST_SEEDS, VALIDATION_SEEDS, VISIBLE_SEED, Split, paper_split

__all__ = [
    "DATASETS",
    "TEST_SEEDS",
    "VALIDATION_SEEDS",
    "VISIBLE_SEED",
    "DatasetInfo",
    "Split",
    "dataset_info",
    "group_split",
    "load_dataset",
    "paper_split",
    "standardize",
    "time_split",
]
