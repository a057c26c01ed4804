"""The tools that the model of a run is shown: those that the rules do not deny its user anyway.

Knows tables, rules and dialects; it must not know runs or agents.
"""

from __future__ import annotations

from collections.abc import Iterable

from quoth.neuro.prompt.dialects import RUN, Dialect
from quoth.tools.call.call import Route
from quoth.tools.policy.offer import offered, ways
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import ToolTable

MOST_OFFERED = 100  # tables for users and routes that are kept


class Offers:
    """What these rules offer, kept for each user, route and kind of dialect."""

    def __init__(self, policy: RulesPolicy) -> None:
        self._policy = policy
        self._offered: dict[tuple[str, Route, bool], tuple[ToolTable, int]] = {}  # and the changes until then

    def table(
        self,
        table: ToolTable,
        dialect: Dialect,
        user: str,
        route: Route = "reply",
        before: Iterable[str] = (),
    ) -> ToolTable:
        """The table of a run that speaks this dialect, hiding what the rules deny this user, or ALL_SPEAKERS
        of a chat, whatever the arguments; and what its model was not shown ``before``."""
        programs = dialect.name == RUN.name
        kind, changes = (user, route, programs), table.whole.changes
        made, known = self._offered.get(kind, (None, 0))
        # There is one for all runs, so that it is searched quickly, until a tool is made or replaced.
        if made is None or made.whole is not table.whole or known != changes:
            routes = ways(table, self._policy, user, route, programs=programs)
            if len(self._offered) >= MOST_OFFERED:  # a chat may have any number of speakers
                self._offered.clear()
            made = offered(table, self._policy, user, routes)
            self._offered[kind] = made, changes
        return made if made.hidden.issuperset(before) else table.hiding(made.hidden.union(before))
