"""What people decide: the questions, who may answer them, and what they are shown before they do."""
