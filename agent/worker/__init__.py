"""The service that runs the calls of other machines: quoth worker."""
