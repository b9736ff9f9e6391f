//! Rules where something is missing: said, never guessed.
