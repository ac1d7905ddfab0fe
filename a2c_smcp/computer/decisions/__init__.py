"""What people decide: what they are asked, what they are shown, and who can answer."""
