"""What a watcher of a computer sees: its events, how often they come, and its state at one moment."""
