"""What each job is asked to do, one declaration per job."""
