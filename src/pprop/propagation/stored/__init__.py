"""Power steps over a graph whose entries stay on the disk: `propagate_folder` in `steps`."""
