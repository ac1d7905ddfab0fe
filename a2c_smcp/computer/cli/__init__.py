"""The Computer's command line. Nothing in `computer/` outside this folder imports it."""
