"""What outputs can be compared with: the class of a node, or numbers, each output with its own."""

CROSS_ENTROPY, SQUARED, HUBER, LOGISTIC = "cross_entropy", "squared_error", "huber", "logistic"
ELEMENTWISE = SQUARED, HUBER, LOGISTIC
# Where the loss of Huber turns from a square to a line, in the unit of the targets.
HUBER_TURN = 1.35
