"""What the plugin prints about failures and tapes."""
