"""What a run is asked for: the site, which is there whoever schedules, and its scheduler."""
