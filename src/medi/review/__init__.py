"""Look at what was discovered, name, merge, split and answer: a page on this machine, its journal and its exports."""
