"""Values every room shares. Standard library only; nothing here does I/O."""
