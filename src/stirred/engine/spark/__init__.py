"""Run on a cluster with Apache Spark."""

from stirred.engine.spark.engine import Spark

__all__ = ["Spark"]
