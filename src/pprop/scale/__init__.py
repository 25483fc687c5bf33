"""Graphs as large as a disk: power steps over stored graphs, and planted graphs to check them with."""

from pprop.scale.graph_rows import StoredGraph
from pprop.scale.panel_steps import StepsProgress
from pprop.scale.steps import FolderSteps, plan_steps, propagate_folder
from pprop.scale.steps_plan import StepsPlan

__all__ = ["FolderSteps", "StepsPlan", "StepsProgress", "StoredGraph", "plan_steps", "propagate_folder"]
