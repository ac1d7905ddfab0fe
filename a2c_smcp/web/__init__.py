"""HTTP that is served to strangers."""
