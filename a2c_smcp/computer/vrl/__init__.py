"""Programs in VRL that transform the results of tools. They run in a process of their own."""
