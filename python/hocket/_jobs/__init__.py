"""How ranks start and end: processes, threads, crews, joining a job, stopping it."""
