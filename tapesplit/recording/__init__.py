"""Recording: run the function once and keep its tape, with functions and boxes that record themselves."""
