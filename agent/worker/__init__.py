"""The service that makes the calls of other machines: quoth worker. Knows no models and no conversations."""
