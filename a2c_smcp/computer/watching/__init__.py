"""What a watcher of a computer sees: its events, when they are said, and its state at one moment."""
