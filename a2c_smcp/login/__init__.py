"""People sign in at a server with `a2c login`, and every command then has their token for it."""
