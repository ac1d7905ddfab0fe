"""The skills of a computer: folders with instructions for a model, which agents may list and read."""
