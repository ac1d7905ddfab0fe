"""What a Computer writes into its record: a row for each call, decision, sign-in, and state of a server or office."""
