"""How things run: devices, processes, files, progress."""
