"""Someone's own pictures in, discovered classes out."""
