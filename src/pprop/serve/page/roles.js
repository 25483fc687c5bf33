// What the label of a node is used for, in words.

export const ROLES = ["training", "validation", "test", "unlabelled"];

const USES = {
  training: "Training node: the model was trained with its label.",
  validation: "Validation node: its label decided when to stop the training.",
  test: "Test node: its label is used only to judge the prediction.",
  unlabelled: "It has no label.",
};

/** Whether training or early stopping used the label of a node. */
export const isUsed = (node) => node.role === "training" || node.role === "validation";
export const useOf = (node) => USES[node.role];
