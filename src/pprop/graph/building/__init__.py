"""Graph folders from streams of tables, with bounded memory: `build_graph` in `build`."""
