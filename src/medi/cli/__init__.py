"""Every command and its options."""
