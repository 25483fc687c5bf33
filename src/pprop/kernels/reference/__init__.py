"""The reference backend: plain torch, written to be read. It runs wherever torch runs."""
