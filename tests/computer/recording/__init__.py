"""Tests of `a2c_smcp/computer/recording/`."""
