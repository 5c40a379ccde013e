"""The board: a frozen set of scenarios on which every scheduling policy is measured alike."""
