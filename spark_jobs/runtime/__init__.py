"""Parts that all jobs share: command line, process, Spark tasks and progress."""
