"""Graphs as large as a disk: power steps over stored graphs, and planted graphs to check them with."""

from pprop.scale.graph_rows import StoredGraph
from pprop.scale.panel_steps import StepsProgress
from pprop.scale.planted import Planted, planted_graph
from pprop.scale.planted_features import NormalFeatures, WordFeatures
from pprop.scale.planted_files import PlantedFiles, write_planted
from pprop.scale.steps import FolderSteps, plan_steps, propagate_folder
from pprop.scale.steps_plan import StepsPlan

__all__ = [
    "FolderSteps",
    "NormalFeatures",
    "Planted",
    "PlantedFiles",
    "StepsPlan",
    "StepsProgress",
    "StoredGraph",
    "WordFeatures",
    "plan_steps",
    "planted_graph",
    "propagate_folder",
    "write_planted",
]
