"""A trained model over HTTP, and the page that shows why a node got its class. Needs fastapi, uvicorn and prometheus-client."""
