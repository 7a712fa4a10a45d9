"""The folder of a workbench: data, plans with their history, runs and packets; a restart loses nothing."""
