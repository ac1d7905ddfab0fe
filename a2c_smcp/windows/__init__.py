"""What is open on a machine as `window://` windows: terminals, browser tabs, files that grow, commands. Built on the
kit; `a2c windows` serves it.
"""
