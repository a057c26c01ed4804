"""StrictModel, the base of every input model. It is imported where the first model is made: pydantic takes
twice as long to import as Python to start.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model in which unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False)
