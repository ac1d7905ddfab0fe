"""A client's connection to the server: how it is made, lost and made again."""
