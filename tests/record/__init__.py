"""Tests of `a2c_smcp/record/`."""
