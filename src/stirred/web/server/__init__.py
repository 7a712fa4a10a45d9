"""The web server: the application, who may call it, and what it writes about a call."""
