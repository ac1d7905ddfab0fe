"""What the commands share: how they print, which options they have, how they end."""
