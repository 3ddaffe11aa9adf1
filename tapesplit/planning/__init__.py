"""Planning: solve the chain, turn its steps into tasks, predict them, and keep the plan."""
