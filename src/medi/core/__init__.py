"""What everything stands on: errors, files, the system, devices, progress."""
