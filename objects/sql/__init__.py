"""A replicated SQL database (stand-in until the engine is merged)."""
