"""Tokens of an issuer (OpenID Connect, OAuth 2): whether one is valid, and what its client may do."""
