"""The versions of the tables, one step a file; alembic goes through them."""
