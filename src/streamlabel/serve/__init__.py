"""HTTP service and web pages."""
