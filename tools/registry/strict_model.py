"""StrictModel, the base of every input model. It is imported when the first model is created: importing
pydantic takes twice as long as starting Python.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A model in which unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=False)
