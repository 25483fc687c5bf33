"""Tables as graphs: files and frames as Arrow columns, ids, classes and the adjacency matrix of an edge list."""
