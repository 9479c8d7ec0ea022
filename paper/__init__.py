"""What only reproduces the paper's tables and figures: `medi bench paper` runs it from a clone, and no wheel has it."""
