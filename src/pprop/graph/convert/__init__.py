"""The objects and files of other libraries as the fields of a Graph, and back."""
