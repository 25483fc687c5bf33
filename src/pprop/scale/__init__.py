"""Graphs beyond memory, on one machine: folders, training on neighbourhoods, steps over stored graphs, planted graphs."""

from pprop.scale.blocks import predict
from pprop.scale.build import build_graph
from pprop.scale.graph_rows import StoredGraph
from pprop.scale.minibatch import train
from pprop.scale.neighbourhoods import Neighbourhoods, find_neighbourhoods
from pprop.scale.panel_steps import StepsProgress
from pprop.scale.planted import Planted, planted_graph
from pprop.scale.planted_features import NormalFeatures, WordFeatures
from pprop.scale.planted_files import PlantedFiles, write_planted
from pprop.scale.steps import FolderSteps, plan_steps, propagate_folder
from pprop.scale.steps_plan import StepsPlan

__all__ = [
    "FolderSteps",
    "Neighbourhoods",
    "NormalFeatures",
    "Planted",
    "PlantedFiles",
    "StepsPlan",
    "StepsProgress",
    "StoredGraph",
    "WordFeatures",
    "build_graph",
    "find_neighbourhoods",
    "plan_steps",
    "planted_graph",
    "predict",
    "propagate_folder",
    "train",
    "write_planted",
]
