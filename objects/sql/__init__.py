"""A replicated SQL database, on SQLite or PostgreSQL."""
