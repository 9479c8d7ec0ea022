"""Tasks: which items make up a problem of discovery. Nothing is trained here."""
