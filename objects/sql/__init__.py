"""A replicated SQL database, on SQLite or PostgreSQL."""

from objects.sql.database import Database
from objects.sql.errors import DataError, IntegrityError, ProgrammingError, SqlError
from objects.sql.result import Params, Result

__all__ = ["DataError", "Database", "IntegrityError", "Params", "ProgrammingError", "Result", "SqlError"]
