"""Flights: the steps of a plan are run, approved and reported."""
