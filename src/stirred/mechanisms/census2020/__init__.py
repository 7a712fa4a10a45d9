"""Publish the products of the 2020 census beside TopDown: SafeTab-P, SafeTab-H and PHSafe."""
