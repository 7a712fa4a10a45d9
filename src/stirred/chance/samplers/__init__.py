"""Samplers that follow their stated law exactly: coins, counts and noise."""
