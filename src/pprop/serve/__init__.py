"""A trained model over HTTP, and the page that shows why a node got its class. Needs ``pprop[serve]``."""
