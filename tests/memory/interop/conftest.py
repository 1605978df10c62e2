"""Tests against other programs: a PostgreSQL server, and the reference on Node."""
