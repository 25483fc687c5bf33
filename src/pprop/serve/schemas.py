"""The shapes of requests and answers: what the OpenAPI document shows, and what requests are checked against."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr

from pprop.serve.limits import MOST_CHANGES, MOST_CONTRIBUTORS, MOST_EDITS, MOST_IDS, MOST_STEPS


def _whole(value: object) -> object:
    """Return 138 for 138.0, which is an integer as JSON Schema has it, and anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_whole)
Whole = Annotated[StrictInt, _WHOLE]
NodeId = Whole | StrictStr
Finite = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Alpha = Annotated[Finite | None, Field(gt=0, le=1, description="Teleport probability; absent: that of the model.")]
StepCount = Annotated[StrictInt, Field(ge=1, le=MOST_STEPS), _WHOLE]
Steps = Annotated[StepCount | None, Field(description="Power steps; absent: as the model.")]
Weight = Annotated[Finite, Field(gt=0, le=1e9)]


Role = Annotated[
    Literal["training", "validation", "test", "unlabelled"],
    Field(description="What its label is used for: training, early stopping, or only to judge the prediction."),
]


class Request(BaseModel):
    """A body: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(populate_by_name=True)


class Error(Answer):
    """What went wrong."""

    error: str = Field(description="A short code for programs.")
    message: str = Field(description="One sentence for people.")


class Status(Answer):
    """Whether the server works."""

    status: str


class Brief(Answer):
    """A node in a few words."""

    id: NodeId
    name: str | None = Field(description="A text of the node, such as a title, where the data has one.")
    predicted: str
    confidence: float = Field(description="Probability of the predicted class.")
    label: str | None = Field(description="The known class.")
    role: Role


class Prediction(Brief):
    """A node and its prediction."""

    probabilities: list[float]
    network: list[float] | None = Field(
        description="Probabilities of the network alone; null where no network sees each node alone."
    )
    text: str | None
    degree: int
    distance: int | None = Field(description="Steps to the nearest training node; null where none is reachable.")


class BriefWithProbabilities(Brief):
    """One line of the stream of all predictions."""

    probabilities: list[float]


class SpreadAnswer(Answer):
    """With what predictions were spread."""

    alpha: float | None
    steps: int | None = Field(description="Null: exactly, or not at all.")


class PredictionsAnswer(SpreadAnswer, title="Predictions"):
    """Predictions of the nodes asked for, in their order."""

    predictions: list[Prediction]


class Decision(Answer):
    """The threshold from which on a node is predicted as the positive class, and what it gave on validation nodes."""

    positive: str = Field(description="The class that is looked for.")
    probability: float = Field(description="A node is predicted as this class if its probability is at least this.")
    rule: str = Field(description="What the threshold was chosen for, in words.")
    precision: float = Field(description="Share of the validation nodes predicted as the class that are of the class.")
    recall: float = Field(description="Share of the validation nodes of the class that are predicted as the class.")
    nodes: int = Field(description="Validation nodes that it was chosen on.")
    positives: int = Field(description="Validation nodes of the class.")
    taken: int = Field(description="Validation nodes predicted as the class.")
    hits: int = Field(description="Validation nodes predicted as the class that are of the class.")
    sentence: str = Field(description="All of this in one sentence for people.")


class Card(SpreadAnswer):
    """The model card."""

    name: str
    kind: str
    graph: str | None
    classes: list[str]
    nodes: int
    edges: int
    features: int
    directed: bool
    weighted: bool
    training_nodes: int
    validation_nodes: int = Field(description="Their labels are used for early stopping.")
    test_nodes: int = Field(description="Labelled nodes that are used for neither.")
    unlabelled_nodes: int
    live: bool
    named: bool
    explains: bool = Field(description="Whether predictions are sums over nodes, so that they can be explained.")
    spreads: bool = Field(description="Whether alpha and steps may be chosen.")
    pprop: str
    accuracy: float | None = Field(description="On test nodes.")
    threshold: Decision | None = Field(description="Null: a node gets its most probable class.")
    settings: dict[str, Any]
    example: NodeId


class FoundAnswer(Answer, title="Found"):
    """Nodes that a search has found."""

    total: int
    nodes: list[Brief]


class Contributor(Brief):
    """A node that a prediction came from."""

    weight: float = Field(description="Share of this node's own prediction in the result.")
    contribution: float = Field(description="What it adds to the logit.")
    network: list[float] | None


class Rest(Answer):
    """All other contributors together."""

    nodes: int
    weight: float
    contribution: float


class ExplanationAnswer(SpreadAnswer, title="Explanation"):
    """A logit as a sum: contributions and rest add up to it."""

    id: NodeId
    of_class: str = Field(alias="class")
    logit: float
    contributors: list[Contributor]
    rest: Rest


class Placed(Brief):
    """A node of a neighbourhood, with the place to draw it at."""

    x: float = Field(ge=-1, le=1)
    y: float = Field(ge=-1, le=1)
    influence: float = Field(description="Weight in the centre's prediction.")


class Edge(Answer):
    """An edge; of a directed graph from the node that gives to the node that receives."""

    source: NodeId
    target: NodeId
    weight: float


class Neighbourhood(SpreadAnswer):
    """The nodes that a prediction draws on most, and the edges among them."""

    centre: NodeId
    nodes: list[Placed]
    edges: list[Edge]
    degree: int
    shown: int


class ClassSize(Answer):
    """A class and how many nodes it has."""

    name: str
    labelled: int
    training: int
    validation: int
    test: int
    predicted: int


class AtDistance(Answer):
    """Nodes at one distance from training nodes."""

    distance: int | None
    nodes: int
    tested: int
    accuracy: float | None
    network_accuracy: float | None = Field(
        description="Of the most probable class of the network alone. A threshold of the model is not used."
    )


class AtConfidence(Answer):
    """Nodes whose confidence lies between two numbers."""

    at_least: float = Field(alias="from")
    below: float = Field(alias="to")
    nodes: int
    accuracy: float | None


class Diagnostics(Answer):
    """Where the model is wrong or unsure, on test nodes."""

    tested: int = Field(description="Test nodes whose label is a class of the model.")
    accuracy: float | None
    confusion: list[list[int]] = Field(description="Rows are true classes, columns predicted ones.")
    classes: list[ClassSize]
    distance: list[AtDistance]
    confidence: list[AtConfidence]
    uncertain: list[Brief]


class PredictRequest(Request):
    """Nodes to predict."""

    ids: list[NodeId] = Field(min_length=1, max_length=MOST_IDS)
    alpha: Alpha = None
    steps: Steps = None


FeatureValue = Finite | Whole | StrictStr | bool | None


class NewEdge(Request):
    """An edge from a new node to one of the graph."""

    id: NodeId
    weight: Weight = 1.0


class NewNodeRequest(Request):
    """A node that is not in the graph."""

    features: dict[str, FeatureValue] | list[Finite] = Field(
        description="Values by the name of their feature or column (what is not named is zero, or missing), or all in order."
    )
    edges: list[NewEdge] = Field(default=[], max_length=MOST_IDS)


class NewPrediction(Answer):
    """The prediction of a node that is not in the graph."""

    predicted: str
    confidence: float
    probabilities: list[float]
    network: list[float] | None


class NewNode(Answer):
    """The prediction of a new node, and which of the given features it is made of."""

    prediction: NewPrediction
    used: list[str]
    left_out: list[str] = Field(description="Given columns that the model does not use.")


class Pair(Request):
    """Two ends of an edge."""

    source: NodeId
    target: NodeId


class WeightedPair(Pair):
    """An edge and its weight."""

    weight: Weight = 1.0


class WhatIfRequest(Request):
    """Edges to imagine away, and others to imagine."""

    id: NodeId
    remove: list[Pair] = Field(default=[], max_length=MOST_CHANGES)
    add: list[WeightedPair] = Field(default=[], max_length=MOST_CHANGES)
    alpha: Alpha = None
    steps: Steps = None
    k: Annotated[StrictInt, Field(ge=1, le=MOST_CONTRIBUTORS), _WHOLE] = Field(
        default=20, description="Contributors to name."
    )
    of_class: StrictStr | None = Field(
        default=None, alias="class", description="The class to explain; absent: the one predicted with these edges."
    )


class Moved(Brief):
    """A node whose class changes."""

    before: str


class WhatIf(Answer):
    """A prediction before and after; the graph is unchanged."""

    before: Prediction
    after: Prediction
    explanation: ExplanationAnswer = Field(description="Of the prediction after, on the graph with these edges.")
    moved: list[Moved]
    moved_total: int


class AddEdge(WeightedPair):
    """A new edge."""

    op: Literal["add_edge"]


class RemoveEdge(Pair):
    """An edge that goes."""

    op: Literal["remove_edge"]


class AddNode(Request):
    """A new node, without edges."""

    op: Literal["add_node"]
    id: NodeId
    features: dict[str, FeatureValue] | list[Finite]


class RemoveNode(Request):
    """A node that goes, with its edges."""

    op: Literal["remove_node"]
    id: NodeId


class SetFeatures(Request):
    """Other features of a node."""

    op: Literal["set_features"]
    id: NodeId
    features: dict[str, FeatureValue] | list[Finite]


Edit = Annotated[AddEdge | RemoveEdge | AddNode | RemoveNode | SetFeatures, Field(discriminator="op")]


class EditsRequest(Request):
    """Edits, made in their order, all or none."""

    edits: list[Edit] = Field(min_length=1, max_length=MOST_EDITS)


class Edited(Answer):
    """The number of the last batch, and how many edits it had."""

    sequence: int
    applied: int


class EditState(Answer):
    """How many batches have been made, and the name of their log."""

    sequence: int
    log: str
