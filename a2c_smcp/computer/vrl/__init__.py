"""Programs in VRL, which change the results of tools, in a process of their own."""
