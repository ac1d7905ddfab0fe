"""Tabs of a Chromium as windows, through Playwright. Imported only when a browser is asked for."""
