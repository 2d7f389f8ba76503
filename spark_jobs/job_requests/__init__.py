"""The requests of the jobs, one declaration per job."""
