"""Read and count the records of a census on Spark."""
