"""How ranks start, join a job, stop and end: as processes, as threads, in crews."""
