"""The catalogue of tools in Redis, signed, and the table that is rebuilt from it. Sends no call."""

from quoth.tools.catalog.payload import build_catalog_payload as build_catalog_payload
from quoth.tools.catalog.store import load_catalog as load_catalog
from quoth.tools.catalog.store import publish_catalog as publish_catalog
from quoth.tools.registry.entry import schema_hash as schema_hash
from quoth.tools.registry.openai_schema import openai_tool_dict as openai_tool_dict
