"""Out of here: a server, jobs of many rows, and other projects' formats."""
