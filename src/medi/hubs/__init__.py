"""Models of other libraries as encoders: torch, and what is fetched of the Hugging Face hub."""
