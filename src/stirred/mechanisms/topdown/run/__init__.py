"""One workload from the census to the release."""
