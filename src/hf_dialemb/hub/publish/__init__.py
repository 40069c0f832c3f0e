"""Publishing: what is checked, sent, and looked at again."""
