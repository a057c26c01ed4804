"""One run of the loop: how it is built, its budget, its conversation, its sub-agents, its recording."""
